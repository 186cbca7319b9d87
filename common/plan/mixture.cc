#include "common/plan/mixture.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace penstock::plan {
namespace {

constexpr std::uint64_t kQ = kMixturePeriod;

std::uint64_t ReleaseOf(std::uint64_t j, std::uint64_t q) { return j * kQ / q; }
std::uint64_t DeadlineOf(std::uint64_t j, std::uint64_t q) {
  return ((j + 1) * kQ + q - 1) / q;
}

// Smallest first: (release or deadline, source).
using Entry = std::pair<std::uint64_t, std::uint32_t>;
using Heap = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

}  // namespace

Mixture::Mixture(std::span<const std::uint32_t> quotas)
    : quotas_(quotas.begin(), quotas.end()),
      source_(kQ),
      rank_(kQ),
      position_(kQ) {
  std::vector<std::uint32_t> next(quotas.size(), 0);  // slot j of each source
  Heap waiting, ready;
  std::uint32_t given = 0;
  for (std::uint32_t s = 0; s < quotas.size(); ++s) {
    first_.push_back(given);
    given += quotas[s];
    if (quotas[s] > 0) waiting.emplace(0, s);
  }
  for (std::uint32_t t = 0; t < kQ; ++t) {
    while (!waiting.empty() && waiting.top().first <= t) {
      const std::uint32_t s = waiting.top().second;
      waiting.pop();
      ready.emplace(DeadlineOf(next[s], quotas[s]), s);
    }
    const std::uint32_t s = ready.top().second;  // never empty: README.md
    ready.pop();
    source_[t] = static_cast<std::uint16_t>(s);
    rank_[t] = next[s];
    position_[first_[s] + next[s]] = t;
    if (++next[s] < quotas[s])
      waiting.emplace(ReleaseOf(next[s], quotas[s]), s);
  }
}

std::uint64_t Mixture::PositionOf(std::uint32_t source,
                                  std::uint64_t rank) const {
  const std::uint64_t q = quotas_[source];
  return rank / q * kQ + position_[first_[source] + rank % q];
}

std::uint64_t Mixture::CountBefore(std::uint32_t source,
                                   std::uint64_t position) const {
  const auto begin = position_.begin() + first_[source];
  const auto end = begin + quotas_[source];
  const auto inside = std::lower_bound(begin, end, position % kQ) - begin;
  return position / kQ * quotas_[source] + static_cast<std::uint64_t>(inside);
}

}  // namespace penstock::plan
