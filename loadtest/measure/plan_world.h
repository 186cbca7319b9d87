#ifndef PENSTOCK_LOADTEST_MEASURE_PLAN_WORLD_H_
#define PENSTOCK_LOADTEST_MEASURE_PLAN_WORLD_H_

#include <cstdint>
#include <vector>

#include "common/plan/planner.h"

// What the plan is measured on: a capture index in memory, sources of several
// weights.
namespace penstock::loadtest {

inline constexpr std::uint32_t kPlanSources = 300;

// Captures of one video track, run and GOP of so many frames.
format::CaptureIndexRows GenerateIndex(std::uint32_t captures, std::uint32_t frames);

// kPlanSources sources of one-frame windows, weights 1 to 7.
plan::FeedSpec GenerateFeed(std::uint64_t global_batch);

// Captures dealt to the sources in turn.
std::vector<plan::SourceInput> InputsOf(const format::CaptureIndexRows& rows);

}  // namespace penstock::loadtest

#endif  // PENSTOCK_LOADTEST_MEASURE_PLAN_WORLD_H_
