#ifndef PENSTOCK_SERVER_PIPELINE_BATCH_LAYOUT_H_
#define PENSTOCK_SERVER_PIPELINE_BATCH_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/pipeline/feed_plan.h"

namespace penstock::pipeline {

// The slab of one data rank and step, and what is fixed about its making.
struct BatchLayout {
  layout::SlabLayout slab;
  std::uint64_t items = 0;  // units of a rank, at the step that has most
  std::uint64_t microbatches = 1;
  // By source, then by selected capture: the transforms of the video outputs,
  // in the order of the outputs.
  std::vector<std::vector<std::vector<layout::VideoTransform>>> transforms;
};

// Type and shape of one unit of an output whose samples have so many frames.
layout::ItemTensor ItemOf(const OutputSpec& output, std::uint32_t frames);

// Lays out the share of one of `data_world` ranks.
//
// kInvalidArgument: as FeedPlan::UnitsMax; an output that is impossible
// kNotFound:        a capture without the track, key or column an output names
// kUnimplemented:   a pixel format that is not converted today (names it)
absl::StatusOr<BatchLayout> MakeBatchLayout(const FeedPlan& plan,
                                            std::uint32_t data_world);

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_BATCH_LAYOUT_H_
