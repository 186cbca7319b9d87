#include "loadtest/measure/pairs.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace penstock::loadtest {
namespace {

double Quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  const double at = q * static_cast<double>(v.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const auto high = std::min(low + 1, v.size() - 1);
  return v[low] + (v[high] - v[low]) * (at - static_cast<double>(low));
}

}  // namespace

double Median(std::vector<double> values) {
  return values.empty() ? 0 : Quantile(std::move(values), 0.5);
}

absl::StatusOr<Ratio> RunPairs(
    const std::string& name, const std::string& unit, int pairs, double bound,
    bool at_least, const std::function<absl::StatusOr<double>()>& ours,
    const std::function<absl::StatusOr<double>()>& theirs) {
  std::vector<double> a, b, ratios;
  for (int i = 0; i < pairs; ++i) {
    double x = 0, y = 0;
    if (i % 2 == 0) {
      PENSTOCK_ASSIGN_OR_RETURN(x, ours());
      PENSTOCK_ASSIGN_OR_RETURN(y, theirs());
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(y, theirs());
      PENSTOCK_ASSIGN_OR_RETURN(x, ours());
    }
    a.push_back(x);
    b.push_back(y);
    ratios.push_back(x / y);
  }
  Ratio r;
  r.name = name;
  r.unit = unit;
  r.ours = Median(a);
  r.theirs = Median(b);
  r.ratio = Median(ratios);
  r.spread = (Quantile(ratios, 0.75) - Quantile(ratios, 0.25)) / r.ratio;
  r.bound = bound;
  r.at_least = at_least;
  r.pairs = pairs;
  return r;
}

std::string Verdict(const Ratio& r) {
  if (r.spread > kSpreadMax) {
    return absl::StrFormat("not judged (spread %.0f %%)", r.spread * 100);
  }
  const bool good = r.at_least ? r.ratio >= r.bound : r.ratio <= r.bound;
  return good ? "ok" : "missed";
}

}  // namespace penstock::loadtest
