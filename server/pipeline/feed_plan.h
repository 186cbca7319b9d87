#ifndef PENSTOCK_SERVER_PIPELINE_FEED_PLAN_H_
#define PENSTOCK_SERVER_PIPELINE_FEED_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/tensor.h"
#include "common/layout/transform.h"
#include "common/plan/data_ranks.h"
#include "common/plan/tensor_role.h"
#include "server/dataset/dataset.h"

// What the pipeline needs to know of a feed: an open dataset per source, the
// units and samples of any step, and the tensors to make of them.
// `server/dataset` makes it from the feed file with the pure planner.
namespace penstock::pipeline {

enum class OutputKind { kVideo, kKeys, kMouse, kColumns, kTimes };

// One tensor of the batch; README.md of the module gives shapes and meaning.
struct OutputSpec {
  std::string name;
  OutputKind kind = OutputKind::kVideo;
  std::string track;                    // events or table track; empty: first
  std::uint32_t width = 0, height = 0;  // video
  layout::PixelLayout layout = layout::PixelLayout::kTchw;
  layout::Colour colour = layout::Colour::kRgb;
  layout::Resize resize = layout::Resize::kBilinear;
  std::vector<std::string> names;  // keys or columns
  plan::TensorRole role = plan::TensorRole::kInput;
};

struct SampleRef {
  std::string id;
  std::uint32_t source = 0;
  std::uint32_t capture = 0;  // row in the source's dataset
  std::uint32_t track = 0;    // row of its video track
  std::uint64_t start_frame = 0;
  std::uint32_t frames = 1, stride = 1;
  std::uint64_t tokens = 0;  // 0: the feed has no lengths
  bool reset = false;        // with lanes: not the next of its lane
};

// What is cut over the ranks: a sample, a microbatch of a bucket, or a pack.
struct UnitRef {
  std::uint32_t shape = 0;  // in FeedPlan::shapes()
  std::uint64_t first = 0;  // of its samples, in the step
  std::uint32_t samples = 1;
};

// One shape of microbatches, when the feed has buckets.
struct ShapeSpec {
  std::string name;
  std::uint32_t frames = 1, width = 0, height = 0;
  std::uint64_t samples = 1;
};

// Sizes of a pack; no packing when `tokens` is 0.
struct PackSpec {
  std::uint64_t tokens = 0, segments = 0;
  std::uint32_t frames = 0;
  std::uint64_t length_multiple = 1;  // of the tokens of every sample
};

struct SourceRef {
  std::string name;
  std::shared_ptr<const dataset::Dataset> dataset;
  std::vector<std::uint32_t> captures;  // selected
  std::vector<std::uint32_t> tracks;    // video track row of each
  bool previous_interval = false;  // inputs of the interval before the frame
};

// One step, cut over the data ranks.
struct PlannedStep {
  std::vector<SampleRef> samples;  // of the units, one after the other
  std::vector<UnitRef> units;      // of all ranks, global order
  std::uint64_t rank_units = 0;    // of every rank, masked ones included
  std::uint64_t tokens = 0;        // of all samples
  bool packed = false;             // the samples of a unit share its frames
  struct Rank {
    // Indices of its units, in its order; those after them are masked.
    std::vector<std::uint64_t> units;
    double loss_scale = 1;
  };
  std::vector<Rank> ranks;
};

// Threading: const calls from any thread.
class FeedPlan {
 public:
  virtual ~FeedPlan() = default;
  virtual const std::vector<SourceRef>& sources() const = 0;
  virtual const std::vector<OutputSpec>& outputs() const = 0;
  virtual std::uint64_t global_batch() const = 0;
  virtual std::uint64_t microbatch() const = 0;  // 0: the whole share
  virtual std::uint32_t frames() const = 0;  // T of every unit without shapes
  virtual const std::vector<ShapeSpec>& shapes() const = 0;
  virtual const PackSpec& packing() const = 0;
  virtual bool lanes() const = 0;
  // A shape whose size the samples of a track have; none without shapes.
  virtual std::optional<std::uint32_t> ShapeOf(
      const format::TrackRow& track) const = 0;
  // 0: never ends, or it is not known yet. Never waits.
  virtual std::uint64_t total_steps() const = 0;
  // Makes known whether the step is before the end; with packing that may take
  // long. kInvalidArgument: a sample that fits no pack
  virtual absl::Status Reach(std::uint64_t step) const = 0;
  // Units of a rank at the step that has most of them. kInvalidArgument: the
  // ranks cannot share a global batch of the feed (names the sizes that work)
  virtual absl::StatusOr<std::uint64_t> UnitsMax(
      const plan::DataRanks& ranks) const = 0;
  // kOutOfRange past the end
  virtual absl::StatusOr<PlannedStep> Step(
      std::uint64_t step, const plan::DataRanks& ranks) const = 0;
};

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_FEED_PLAN_H_
