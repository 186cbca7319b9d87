#ifndef PENSTOCK_COMMON_PLAN_BALANCE_H_
#define PENSTOCK_COMMON_PLAN_BALANCE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/plan/decimal.h"

namespace penstock::plan {

// A rank for each item: rank r gets room[r] of them, which add up; the sums of
// costs, each divided by the rank's speed, are as even as found: largest first
// to the rank with room that would be the first to end an average item, then
// swaps between the last and another rank while they help. Ties go to the
// earlier item and rank. O(n log n + swaps · n).
//
// Bounds: costs below 2^51, at least one rank; speeds one each, or none: all
// alike.
std::vector<std::uint32_t> BalanceRanks(std::span<const std::uint64_t> costs,
                                        std::span<const std::uint64_t> room,
                                        std::span<const Decimal> speeds = {});

struct BalanceReport {
  // Of the times that ranks take: cost / speed.
  double max_over_mean = 1;
  // No assignment of these counts is below: 1; the smallest items alone on any
  // rank; the largest with the smallest others on the rank that is soonest
  // done.
  double lower_bound = 1;
};
BalanceReport ReportBalance(std::span<const std::uint64_t> costs,
                            std::span<const std::uint32_t> ranks,
                            std::uint32_t world,
                            std::span<const Decimal> speeds = {});

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_BALANCE_H_
