#ifndef PENSTOCK_COMMON_PLAN_PACK_FILL_H_
#define PENSTOCK_COMMON_PLAN_PACK_FILL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/plan/pack_plan.h"

namespace penstock::plan {

inline constexpr double kFillWanted = 0.95;

struct PackFill {
  double fill = 1;             // share of the budget that holds tokens
  std::uint64_t proposed = 0;  // a budget that fills kFillWanted; 0: none needed
                               // or none found from half to four times it
};

// What packs of the beginning of a feed hold: of its first windows. The proposal is
// the nearest budget, in sixteenths of the feed's, that has it.
//
// kInvalidArgument: as PackOne
absl::StatusOr<PackFill> ExpectedFill(const PlanInputs& inputs,
                                      const PackPlan& packs);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_PACK_FILL_H_
