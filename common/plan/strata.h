#ifndef PENSTOCK_COMMON_PLAN_STRATA_H_
#define PENSTOCK_COMMON_PLAN_STRATA_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/feed_spec.h"

// Strata: groups of a source's captures, scheduled inside it as sources are in
// the feed.
namespace penstock::plan {

struct StratumSize {
  std::string label;
  std::uint64_t samples = 0;  // > 0, below 2^59
};

// Quotas of kMixturePeriod of the strata, which are in the order of their labels.
// Shares are the samples (proportional), equal (uniform), samples^(1/temperature),
// or the given weights.
//
// kInvalidArgument: a stratum that would never be drawn; explicit weights that
//                   name no stratum or miss one (`where` names the source)
absl::StatusOr<std::vector<std::uint32_t>> StrataQuotas(
    const StrataSpec& spec, std::span<const StratumSize> strata,
    std::string_view where);

// 2^59 · (value / largest)^(1/temperature), rounded down, in whole-number
// arithmetic that is equal everywhere; README.md says how. 1 <= value <= largest
// < 2^59, temperature > 0.
std::uint64_t TemperedShare(std::uint64_t value, std::uint64_t largest,
                            Decimal temperature);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_STRATA_H_
