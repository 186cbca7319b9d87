#include <utility>

#include "common/plan/planner.h"
#include "common/random/permutation.h"
#include "common/status/status.h"
#include "loadtest/measure/bench.h"
#include "loadtest/measure/plan_world.h"

namespace penstock::loadtest {
namespace {

constexpr std::uint32_t kCaptures = 1'000'000;
constexpr std::uint32_t kFrames = 1000;  // of a capture: 10^9 windows of one frame
constexpr std::uint64_t kIndices = 4'000'000;
constexpr std::uint32_t kRanks = 10'000;
constexpr int kStepsTimed = 20;

absl::StatusOr<double> MillionIndices(std::uint64_t n) {
  const random::Permutation p(n, random::MakeKey(Seed{1}, "loadtest"));
  std::uint64_t sum = 0;
  const double begin = NowSeconds();
  for (std::uint64_t i = 0; i < kIndices; ++i) sum += p.At(i);
  const double seconds = NowSeconds() - begin;
  return sum == 0 ? 0 : static_cast<double>(kIndices) / seconds / 1e6;
}

absl::StatusOr<double> StepMs(const plan::Planner& planner, std::uint64_t step) {
  std::uint64_t sum = 0;
  const double begin = NowSeconds();
  for (int i = 0; i < kStepsTimed; ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto batch,
                              planner.PlanStep({step + static_cast<std::uint64_t>(i)}));
    PENSTOCK_ASSIGN_OR_RETURN(const auto cut, planner.Cut(batch, {kRanks}));
    sum += batch.samples[0].index + cut.ranks[0].size();
  }
  return sum == 0 ? 1e9 : (NowSeconds() - begin) * 1e3 / kStepsTimed;
}

}  // namespace

// "theirs" is the goal, but where a line compares two steps.
absl::StatusOr<std::vector<Ratio>> MeasurePlan(const Bench& bench) {
  std::vector<Ratio> out;
  const auto goal = [&](const std::string& name, const char* unit, double value,
                        bool at_least, const auto& ours) -> absl::Status {
    PENSTOCK_ASSIGN_OR_RETURN(
        Ratio r, RunPairs(name + " / goal", unit, bench.pairs, 1, at_least, ours,
                          [&]() -> absl::StatusOr<double> { return value; }));
    out.push_back(std::move(r));
    return absl::OkStatus();
  };
  PENSTOCK_RETURN_IF_ERROR(goal("permuted indices, n = 10^9", "M/s", 20, true,
                                [] { return MillionIndices(1'000'000'000); }));
  PENSTOCK_RETURN_IF_ERROR(goal("permuted indices, n = 2^62 + 1", "M/s", 10, true,
                                [] { return MillionIndices((1ull << 62) + 1); }));
  const format::CaptureIndexRows rows = GenerateIndex(kCaptures, kFrames);
  const auto create = [&]() -> absl::StatusOr<double> {
    const double begin = NowSeconds();
    PENSTOCK_RETURN_IF_ERROR(
        plan::Planner::Create(GenerateFeed(kRanks), InputsOf(rows)).status());
    return NowSeconds() - begin;
  };
  PENSTOCK_RETURN_IF_ERROR(goal("planner of 10^9 windows, 300 sources", "s", 5,
                                false, create));
  PENSTOCK_ASSIGN_OR_RETURN(const auto planner,
                            plan::Planner::Create(GenerateFeed(kRanks), InputsOf(rows)));
  PENSTOCK_ASSIGN_OR_RETURN(
      Ratio steps, RunPairs("plan of step 10^6 / of step 10", "ms", bench.pairs, 1.05,
                            false, [&] { return StepMs(planner, 1'000'000); },
                            [&] { return StepMs(planner, 10); }));
  out.push_back(std::move(steps));
  PENSTOCK_RETURN_IF_ERROR(goal("10,000 ranks, plan and cut, one core", "steps/s", 20,
                                true, [&]() -> absl::StatusOr<double> {
                                  PENSTOCK_ASSIGN_OR_RETURN(
                                      const double ms, StepMs(planner, 1000));
                                  return 1e3 / ms;
                                }));
  return out;
}

}  // namespace penstock::loadtest
