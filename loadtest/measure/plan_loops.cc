// penstock-plan-loops: the hot loops of the plan, alone, for a counter of
// instructions (loadtest/instructions.sh).
//
//   penstock-plan-loops index N COUNT     permuted indices of [0, N)
//   penstock-plan-loops step FIRST COUNT  steps from FIRST on, 10^9 windows
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "common/plan/planner.h"
#include "common/random/permutation.h"
#include "loadtest/measure/plan_world.h"

namespace penstock::loadtest {
namespace {

constexpr std::uint32_t kCaptures = 20'000;
constexpr std::uint32_t kFrames = 50'000;  // windows of one frame
constexpr std::uint64_t kGlobalBatch = 1000;

std::uint64_t Indices(std::uint64_t n, std::uint64_t count) {
  const random::Permutation p(n, random::MakeKey(Seed{1}, "loadtest"));
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum += p.At(i % n);
  return sum;
}

absl::StatusOr<std::uint64_t> Steps(std::uint64_t first, std::uint64_t count) {
  const format::CaptureIndexRows rows = GenerateIndex(kCaptures, kFrames);
  auto planner = plan::Planner::Create(GenerateFeed(kGlobalBatch), InputsOf(rows));
  if (!planner.ok()) return planner.status();
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto batch = planner->PlanStep({first + i});
    if (!batch.ok()) return batch.status();
    for (const plan::Sample& s : batch->samples) sum += s.start_frame;
  }
  return sum;
}

}  // namespace
}  // namespace penstock::loadtest

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s index|step N COUNT\n", argv[0]);
    return 2;
  }
  const std::uint64_t n = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t count = std::strtoull(argv[3], nullptr, 10);
  absl::StatusOr<std::uint64_t> sum =
      std::string_view(argv[1]) == "index" ? penstock::loadtest::Indices(n, count)
                                           : penstock::loadtest::Steps(n, count);
  if (!sum.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[0],
                 std::string(sum.status().message()).c_str());
    return 1;
  }
  std::printf("%llu\n", static_cast<unsigned long long>(*sum));
  return 0;
}
