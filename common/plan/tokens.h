#ifndef PENSTOCK_COMMON_PLAN_TOKENS_H_
#define PENSTOCK_COMMON_PLAN_TOKENS_H_

#include <cstdint>

#include "common/plan/stream.h"

// Lengths in tokens, by the feed's formula of what the capture index says.
namespace penstock::plan {

// Tokens of a sample, at least 1, up to a whole multiple of the packing's; 0 without
// a formula.
std::uint64_t TokensOf(const PlanInputs& inputs, const Sample& sample);

// Mean tokens of a source's units in 1/1024, at least 1: of each group the mean over
// evenly spaced windows of each bucket (README.md), by the groups' quotas.
std::uint64_t MeanTokens(const PlanInputs& inputs, std::uint32_t source,
                         const Lineage& lineage);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_TOKENS_H_
