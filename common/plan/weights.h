#ifndef PENSTOCK_COMMON_PLAN_WEIGHTS_H_
#define PENSTOCK_COMMON_PLAN_WEIGHTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/plan/decimal.h"
#include "common/status/status.h"

namespace penstock::plan {

// Slots of one period of the mixture: quotas add up to it.
inline constexpr std::uint32_t kMixturePeriod = 65536;

struct WeightRounding {
  std::vector<std::uint32_t> quotas;  // sum kMixturePeriod; empty on a fault
  struct {
    int source = -1;  // -1: all of them
    Problem problem;
  } fault;
  bool ok() const { return !quotas.empty(); }
};

// Quotas of kMixturePeriod by largest remainder: each source gets the floor of
// its share, what is left goes one by one to the largest remainders, at equal
// remainders to the earlier source. Zero weights get zero.
//
// Faults: no positive weight; a positive weight that would get no slot
WeightRounding RoundWeights(std::span<const Decimal> weights);

// The same for shares in any unit, below 2^60.
WeightRounding RoundShares(std::span<const std::uint64_t> shares);

// A quota as people read it: "0.2999878 (19660/65536)".
std::string FormatQuota(std::uint32_t quota);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_WEIGHTS_H_
