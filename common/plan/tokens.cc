#include "common/plan/tokens.h"

#include <algorithm>

namespace penstock::plan {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kLooks = 4096;  // windows of a source
constexpr std::uint64_t kLooksMin = 16;  // and of a bucket
constexpr unsigned kFraction = 10;

// Tokens of all windows of a bucket, from `looks` evenly spaced ones.
Wide TokensIn(const PlanInputs& inputs, std::uint32_t source, const View& view,
              std::uint64_t looks) {
  const std::uint64_t count = std::min(view.size(), looks);
  Wide sum = 0;
  for (std::uint64_t j = 0; j < count; ++j) {
    const Window w =
        view.At(static_cast<std::uint64_t>(Wide{j} * view.size() / count));
    sum += TokensOf(inputs, {.source = source,
                             .capture = w.capture,
                             .track = w.track,
                             .start_frame = w.start_frame,
                             .stride = w.stride,
                             .frames = w.frames});
  }
  return sum * view.size() / count;
}

}  // namespace

std::uint64_t TokensOf(const PlanInputs& inputs, const Sample& sample) {
  if (!inputs.length) return 0;
  const auto& index = inputs.sources[sample.source].index;
  const std::uint64_t tokens = std::max<std::uint64_t>(
      inputs.length->Of(inputs.length->UsesGops() ? CostInputsOf(sample, index)
                                                  : FrameInputsOf(sample, index)),
      1);
  const std::uint64_t multiple = inputs.feed.packing.length_multiple;
  return (tokens + multiple - 1) / multiple * multiple;
}

std::uint64_t MeanTokens(const PlanInputs& inputs, std::uint32_t source,
                         const Lineage& lineage) {
  std::uint64_t buckets = 0;
  for (const Lineage::Stratum& s : lineage.strata()) buckets += s.pool.buckets().size();
  const std::uint64_t looks = std::max(kLooks / buckets, kLooksMin);
  Wide mean = 0;
  for (const Lineage::Stratum& s : lineage.strata()) {
    Wide tokens = 0, units = 0;  // of a pass, both shifted
    for (const Pool::Bucket& b : s.pool.buckets()) {
      tokens += TokensIn(inputs, source, b.view, looks) << kFraction;
      units += (Wide{b.view.size()} << kFraction) / b.samples;
    }
    units = std::max<Wide>(units, 1);
    mean += (tokens << kFraction) / units * s.quota;
  }
  mean /= kMixturePeriod;
  return static_cast<std::uint64_t>(
      std::clamp<Wide>(mean, 1, Wide{1} << 60));
}

}  // namespace penstock::plan
