#ifndef PENSTOCK_SERVER_PIPELINE_STEP_WORK_H_
#define PENSTOCK_SERVER_PIPELINE_STEP_WORK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "common/shm/slot_table.h"
#include "common/shm/worker_protocol.h"
#include "server/pipeline/batch_layout.h"
#include "server/pipeline/feed_plan.h"
#include "server/pipeline/shard_cache.h"
#include "server/pipeline/side_tensors.h"

// The work of one step, as plain values: which GOPs are read and decoded into
// which places, and what the side tensors need.
namespace penstock::pipeline {

// A frame written by a worker: where its digest belongs.
struct FramePlace {
  std::uint32_t item = 0;    // in the step's items
  std::uint32_t tensor = 0;  // output
  std::uint32_t frame = 0;   // of T
};

// One GOP with the GOPs its lead frames need: one read each, one decode.
struct GopUnit {
  std::uint32_t source = 0, capture = 0, track = 0;
  std::vector<std::uint32_t> gops;  // rows in the index, the last is the GOP
  std::shared_ptr<const OpenShard> shard;  // of the last
  std::vector<std::shared_ptr<const OpenShard>> shards;  // of each
  std::uint16_t codec = 0;
  // Targets and their places, parallel.
  std::vector<shm::DecodeTarget> targets;
  std::vector<FramePlace> places;
  std::vector<layout::VideoTransform> transforms;

  // While it runs.
  std::uint64_t area_offset = 0, area_bytes = 0;
  std::vector<std::uint64_t> read_offset;  // in the input area, page aligned
  std::uint32_t reads_left = 0, jobs_left = 0;
  bool read_again = false;  // a block was damaged at the first read
};

// A block of a side track, read into memory of its own.
struct SideRead {
  std::uint32_t source = 0, segment = 0;  // row in the index
  std::shared_ptr<const OpenShard> shard;
  struct Free {
    void operator()(void* p) const noexcept { std::free(p); }
  };
  std::unique_ptr<std::uint8_t, Free> memory;  // page aligned
  std::uint64_t bytes = 0;
  std::optional<format::BlockView> block;  // once read and parsed
  bool read_again = false;  // it was damaged at the first read
};

struct StepItem {
  SampleRef sample;
  std::uint32_t rank = 0;   // data rank
  std::uint64_t slot = 0;   // offset of the rank's slot in the arena
  std::uint32_t shape = 0;  // of its unit
  std::uint64_t unit = 0;   // of the rank's
  std::uint32_t row = 0;    // with buckets: the sample's place in the unit
  std::uint32_t frame = 0;  // packed: frames of the unit before its own
  // By output, then by chunk; filled by workers and by the assembler.
  std::vector<std::vector<Digest128>> chunks;
};

struct StageTimes {
  std::uint64_t plan_ns = 0, fetch_ns = 0, decode_ns = 0, assemble_ns = 0,
                total_ns = 0;
};

// What a rank's slab holds at a step.
struct RankWork {
  double loss_scale = 1;
  std::uint64_t tokens = 0;
  std::vector<std::uint64_t> slice_tokens;  // packed: of those in each cp slice
  // Of its units that are not masked, in its order.
  std::vector<std::uint32_t> shapes, samples;
};

struct StepWork {
  std::uint64_t step = 0;
  std::vector<std::uint32_t> ranks;             // made in this pass
  std::map<std::uint32_t, shm::SlotRef> slots;  // by rank
  std::vector<StepItem> items;                  // global order, of those ranks
  bool whole = false;                           // all items of the step
  std::uint64_t rank_units = 0;      // of every rank, masked ones included
  std::uint64_t global_samples = 0, global_tokens = 0;  // of all ranks
  std::map<std::uint32_t, RankWork> of_ranks;
  std::vector<std::unique_ptr<GopUnit>> units;
  std::map<std::pair<std::uint32_t, std::uint32_t>, SideRead> sides;
  // (source, track, frame) -> ns on the capture's clock
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>,
           std::int64_t>
      frame_ns;

  std::uint32_t units_left = 0, sides_left = 0;
  std::int64_t started_ns = 0;
  StageTimes times;
  bool Done() const { return units_left == 0 && sides_left == 0; }
};

// Fills the items of a step whose slots are set: those of its ranks, in global
// order.
void TakeItems(PlannedStep& planned, StepWork& work);

// Fills units and sides of a step whose items and slots are set.
//
// kDataLoss: a sample names frames that the index does not have
// others:    as ShardCache::Get, SideTracks::Find
absl::Status BuildStep(const FeedPlan& plan, const BatchLayout& layout,
                       ShardCache& shards, SideTracks& sides, StepWork& work);

// Notes the frame times of a GOP's blocks in `work.frame_ns` (those it asks
// for).
void TakeFrameTimes(const FeedPlan& plan, const GopUnit& unit,
                    std::span<const format::BlockView> blocks, StepWork& work);

// Fills every side tensor of every item; all reads are done.
absl::Status FillSides(const FeedPlan& plan, const BatchLayout& layout,
                       SideTracks& sides, std::span<std::uint8_t> arena,
                       StepWork& work);

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_STEP_WORK_H_
