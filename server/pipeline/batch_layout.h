#ifndef PENSTOCK_SERVER_PIPELINE_BATCH_LAYOUT_H_
#define PENSTOCK_SERVER_PIPELINE_BATCH_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/tensor.h"
#include "common/plan/cp_slice.h"
#include "server/pipeline/feed_plan.h"

namespace penstock::pipeline {

// The tensors of one shape of units, with those that the plan makes at the end.
struct ShapeLayout {
  std::string name;  // of the bucket; empty without
  // Without buckets the tensors of the slab: their rows are the units. With
  // them those of one microbatch: their rows are its samples.
  layout::SlabLayout slab;
};

// The slab of one data rank and step, and what is fixed about its making.
struct BatchLayout {
  std::vector<ShapeLayout> shapes;  // one, or one for each bucket
  std::uint64_t unit_stride =
      0;                    // with buckets: bytes from unit to unit, else 0
  std::uint64_t bytes = 0;  // of the slab
  std::uint64_t items = 0;  // units of a rank, at the step that has most
  std::uint64_t microbatches = 1;
  // Of token tensors: in every row the slices of its ranks follow each other.
  plan::CpCut cp;
  // By source, then by selected capture: the transforms of the video outputs,
  // in the order of the outputs.
  std::vector<std::vector<std::vector<layout::VideoTransform>>> transforms;

  // Offset in the slab of a tensor's row: of a unit, or with buckets of the
  // sample `row` of a unit.
  std::uint64_t RowOffset(const layout::TensorDesc& tensor, std::uint64_t unit,
                          std::uint64_t row) const {
    return unit_stride == 0 ? tensor.ItemOffset(unit)
                            : unit * unit_stride + tensor.ItemOffset(row);
  }
};

// Type and shape of one row of an output of so many frames; video of a size.
layout::ItemTensor ItemOf(const OutputSpec& output, std::uint32_t frames);

// The tensors of every shape, for `units` units of a rank.
//
// kInvalidArgument: an output that is impossible
absl::StatusOr<std::vector<ShapeLayout>> ShapesOf(const FeedPlan& plan,
                                                  std::uint64_t units);

// That every unit of the feed can be cut so.
//
// kInvalidArgument: a feed without token tensors; lengths that do not allow it
absl::Status CheckCpCut(const FeedPlan& plan, const plan::CpCut& cp);

// Lays out the share of one of the ranks.
//
// kInvalidArgument: as FeedPlan::UnitsMax, ShapesOf, CheckCpCut
// kNotFound:        a capture without the track, key or column an output names
// kUnimplemented:   a pixel format that is not converted today (names it)
absl::StatusOr<BatchLayout> MakeBatchLayout(const FeedPlan& plan,
                                            const plan::DataRanks& ranks,
                                            const plan::CpCut& cp = {});

// The tensors that the plan makes with a value for each token of a unit.
bool IsTokenTensor(const layout::TensorDesc& tensor);

// What a tensor is for. Those that the plan makes are metadata.
plan::TensorRole RoleOf(const FeedPlan& plan, const layout::TensorDesc& tensor);

// Of one rank's place in its data rank: the token tensors cut to a slice, the
// tensors of its pipeline stage.
struct RankPlace {
  std::uint32_t cp_rank = 0;
  std::uint32_t pp_rank = 0, pp_size = 1;
};

// What of the layout is given to a rank.
//
// kOutOfRange: no such slice or stage
absl::StatusOr<std::vector<ShapeLayout>> ShapesFor(const FeedPlan& plan,
                                                   const BatchLayout& layout,
                                                   const RankPlace& place);

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_BATCH_LAYOUT_H_
