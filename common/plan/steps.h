#ifndef PENSTOCK_COMMON_PLAN_STEPS_H_
#define PENSTOCK_COMMON_PLAN_STEPS_H_

#include <cstdint>

#include "common/plan/feed_spec.h"

// Steps of a feed whose global batch changes at its stages. Data steps count the
// skipped ones, delivered steps do not.
namespace penstock::plan {

// Units of a data step.
std::uint64_t GlobalBatchAt(const FeedSpec& feed, std::uint64_t data_step);
// Units of the data steps [0, data_step); UINT64_MAX: too many to count.
std::uint64_t UnitsBefore(const FeedSpec& feed, std::uint64_t data_step);
// Data steps that have all of their units among the first `units`.
std::uint64_t StepsWithin(const FeedSpec& feed, std::uint64_t units);

// Steps of [0, data_step) that are skipped.
std::uint64_t SkippedBefore(const FeedSpec& feed, std::uint64_t data_step);
// The data step of a delivered one.
std::uint64_t DataStepOf(const FeedSpec& feed, std::uint64_t step);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_STEPS_H_
