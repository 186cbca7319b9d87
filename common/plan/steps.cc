#include "common/plan/steps.h"

#include <algorithm>

namespace penstock::plan {
namespace {

__extension__ using Wide = unsigned __int128;

// Calls `part(first, end, batch)` for the data steps with one global batch, in
// order, until it returns false.
template <typename Part>
void EachPart(const FeedSpec& feed, const Part& part) {
  std::uint64_t first = 0, batch = feed.global_batch;
  for (const StageSpec& s : feed.stages) {
    if (s.global_batch == 0) continue;
    if (!part(first, s.step, batch)) return;
    first = s.step;
    batch = s.global_batch;
  }
  part(first, UINT64_MAX, batch);
}

}  // namespace

std::uint64_t GlobalBatchAt(const FeedSpec& feed, std::uint64_t data_step) {
  std::uint64_t out = feed.global_batch;
  for (const StageSpec& s : feed.stages) {
    if (s.step <= data_step && s.global_batch != 0) out = s.global_batch;
  }
  return out;
}

std::uint64_t UnitsBefore(const FeedSpec& feed, std::uint64_t data_step) {
  Wide units = 0;
  EachPart(feed, [&](std::uint64_t first, std::uint64_t end, std::uint64_t batch) {
    units += Wide{std::min(end, data_step) - first} * batch;
    return end < data_step;
  });
  return units > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(units);
}

std::uint64_t StepsWithin(const FeedSpec& feed, std::uint64_t units) {
  std::uint64_t steps = 0;
  EachPart(feed, [&](std::uint64_t first, std::uint64_t end, std::uint64_t batch) {
    const std::uint64_t whole = std::min(end - first, units / batch);
    steps = first + whole;
    units -= whole * batch;
    return steps == end;
  });
  return steps;
}

std::uint64_t SkippedBefore(const FeedSpec& feed, std::uint64_t data_step) {
  std::uint64_t out = 0;
  for (const SkipSpec& s : feed.skip) {
    if (s.from >= data_step) break;
    out += std::min(s.to, data_step) - s.from;
  }
  return out;
}

std::uint64_t DataStepOf(const FeedSpec& feed, std::uint64_t step) {
  for (const SkipSpec& s : feed.skip) {
    if (step < s.from) break;
    step += s.to - s.from;
  }
  return step;
}

}  // namespace penstock::plan
