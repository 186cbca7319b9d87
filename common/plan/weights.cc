#include "common/plan/weights.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace penstock::plan {
namespace {

// Shares are below 2^60 (weights below 10^18) and at most 2^16 of them, times 2^16: below
// 2^92.
__extension__ using Wide = unsigned __int128;

WeightRounding Faulty(int source, Problem problem) {
  WeightRounding out;
  out.fault.source = source;
  out.fault.problem = std::move(problem);
  return out;
}

}  // namespace

WeightRounding RoundWeights(std::span<const Decimal> weights) {
  std::vector<std::uint64_t> shares;
  for (const Decimal& w : weights) shares.push_back(w.nanos);
  WeightRounding out = RoundShares(shares);
  if (out.fault.source >= 0) {
    out.fault.problem.found =
        FormatDecimal(weights[static_cast<std::size_t>(out.fault.source)]);
  }
  return out;
}

WeightRounding RoundShares(std::span<const std::uint64_t> shares) {
  Wide sum = 0;
  for (const std::uint64_t s : shares) sum += s;
  if (sum == 0) {
    return Faulty(-1, {.what = "every weight is zero: no source is ever drawn",
                       .found = absl::StrCat(shares.size(), " weights of 0"),
                       .expected = "at least one positive weight",
                       .action = "give a source a weight"});
  }
  WeightRounding out;
  std::vector<Wide> remainder;
  std::uint32_t given = 0;
  for (const std::uint64_t s : shares) {
    const Wide share = Wide{s} * kMixturePeriod;
    out.quotas.push_back(static_cast<std::uint32_t>(share / sum));
    remainder.push_back(share % sum);
    given += out.quotas.back();
  }
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return remainder[a] > remainder[b]; });
  // Fewer slots are left than sources have a remainder, so zeros get none.
  for (std::size_t i = 0; given < kMixturePeriod; ++i, ++given) {
    ++out.quotas[order[i]];
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0 || out.quotas[i] > 0) continue;
    return Faulty(
        static_cast<int>(i),
        {.what = "the weight is so small that the source would never be drawn",
         .found = absl::StrCat(shares[i]),
         .expected = "at least about 1/65536 of the sum of the weights",
         .action = "raise it, or write 0 to leave the source out"});
  }
  return out;
}

std::string FormatQuota(std::uint32_t quota) {
  // Exact: 65536 divides 10^16.
  std::string digits = absl::StrCat(
      10'000'000 + (std::uint64_t{quota} * 10'000'000 + kMixturePeriod / 2) /
                       kMixturePeriod);
  const bool whole = quota == kMixturePeriod;
  return absl::StrCat(whole ? "1." : "0.", digits.substr(1), " (", quota, "/",
                      kMixturePeriod, ")");
}

}  // namespace penstock::plan
