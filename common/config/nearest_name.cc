#include "common/config/nearest_name.h"

#include <algorithm>

namespace penstock::config {
namespace {

constexpr std::size_t kLengthMax = 64;

// Optimal string alignment distance; rows of the usual table.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1),
      row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string NearestName(std::string_view name,
                        const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = kLengthMax;
  if (name.size() > kLengthMax) return best;
  for (const std::string& c : candidates) {
    const std::size_t limit =
        std::max<std::size_t>(1, std::max(name.size(), c.size()) / 3);
    const std::size_t d = Distance(name, c);
    if (d > limit || d >= best_distance) continue;
    best = c;
    best_distance = d;
  }
  return best;
}

}  // namespace penstock::config
