#ifndef PENSTOCK_COMMON_PLAN_BALANCE_H_
#define PENSTOCK_COMMON_PLAN_BALANCE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::plan {

// A rank for each item: counts of ranks differ by at most one (the earlier ranks
// have more), the sums of costs as even as found: largest first to the lightest
// rank with room, then swaps between the heaviest and another rank while they
// help. Ties go to the earlier item and rank. O(n log n + swaps · n).
//
// Bounds: costs below 2^51, world >= 1.
std::vector<std::uint32_t> BalanceRanks(std::span<const std::uint64_t> costs,
                                        std::uint32_t world);

struct BalanceReport {
  double max_over_mean = 1;
  // No assignment of these counts is below: 1, or the largest item with the
  // smallest others.
  double lower_bound = 1;
};
BalanceReport ReportBalance(std::span<const std::uint64_t> costs,
                            std::span<const std::uint32_t> ranks,
                            std::uint32_t world);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_BALANCE_H_
