#ifndef PENSTOCK_SERVER_PIPELINE_JOB_PIPELINE_H_
#define PENSTOCK_SERVER_PIPELINE_JOB_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/shm/arena.h"
#include "common/shm/slot_table.h"
#include "common/types/ids.h"
#include "server/io/read_engine.h"
#include "server/pipeline/batch_layout.h"
#include "server/pipeline/feed_plan.h"
#include "server/pipeline/shard_cache.h"
#include "server/pipeline/step_work.h"
#include "server/pipeline/worker_pool.h"

namespace penstock::pipeline {

struct JobPipelineOptions {
  plan::DataRanks ranks;
  std::uint32_t prefetch_steps = 4;
  std::uint64_t arena_bytes_max = 0;  // what is left of the node's budget
  std::uint64_t input_bytes = 256ull << 20;
};

// A batch of one data rank and step, ready in its slot.
struct PublishedBatch {
  std::uint64_t step = 0;
  shm::SlotRef slot;
  std::vector<std::string> sample_ids;
  std::vector<Digest128> item_digests;
  std::uint64_t units = 0;  // masked ones included
  std::uint64_t global_samples = 0;
  std::uint64_t tokens = 0, global_tokens = 0;  // 0: the feed has no lengths
  double loss_scale = 1;
  std::vector<std::uint64_t> slice_tokens;  // packed: of `tokens` by cp slice
  // Of its units that are not masked, in its order.
  std::vector<std::uint32_t> unit_shapes, unit_samples;
  Digest128 batch_digest;
  std::optional<Digest128> global_digest;  // when all items were made here
  StageTimes times;
};

struct RankView {
  std::uint32_t data_rank = 0;
  std::uint64_t position = 0, acked_next = 0;
  std::uint32_t sessions = 0, held_slots = 0;
  bool known = false;
};

struct JobPipelineView {
  std::uint64_t next_step = 0;       // is begun next
  std::uint64_t published_next = 0;  // steps before it are made
  std::uint64_t free_slots = 0, arena_bytes = 0;
  std::string waiting_for;  // who production waits for; empty: nobody
  std::vector<RankView> ranks;
};

// Makes the batches of one generation of a job on this node: plan, fetch,
// decode and transform, assemble, publish in step order.
//
// Threading: any thread may call; one thread of its own does the work.
// Ownership: borrows engine, pool and shards, which outlive it; owns the arena.
// Bounds: `window()` steps per rank in the arena, `prefetch_steps` in the
//   making, `input_bytes` of compressed blocks.
// Slots: a slot is held by the daemon until its rank acknowledged the step, and
//   by every session that was given it until that releases it or is gone;
//   never by a timer.
// Stopping: the destructor refuses, cancels, waits for the reads and workers.
class JobPipeline {
 public:
  // kFailedPrecondition: two steps do not fit the arena (says how much is
  //                      needed); others: memory, workers
  static absl::StatusOr<std::unique_ptr<JobPipeline>> Create(
      std::shared_ptr<const FeedPlan> plan, BatchLayout layout,
      const JobPipelineOptions& options, io::ReadEngine& engine,
      std::shared_ptr<WorkerPool> pool, ShardCache& shards);
  ~JobPipeline();

  const BatchLayout& layout() const;
  const shm::Arena& arena() const;
  std::uint32_t window() const;  // steps of a rank that fit the arena

  // A session takes part for a data rank that wants `position` next. Production
  // starts when every data rank is known.
  void Join(shm::HolderId session, std::uint32_t rank, std::uint64_t position);
  // The session is gone: its slots are given back.
  void Leave(shm::HolderId session);

  // Waits for the batch of a step; empty at the end of the data. The session
  // holds the slot until it releases it.
  //
  // kDeadlineExceeded: names who or what is waited for
  // kCancelled: stopped; others: the error that ended production
  absl::StatusOr<std::optional<PublishedBatch>> Next(shm::HolderId session,
                                                     std::uint32_t rank,
                                                     std::uint64_t step,
                                                     std::uint64_t timeout_ms);
  // The same without a wait: empty unless the batch is published.
  std::optional<PublishedBatch> TakeReady(shm::HolderId session,
                                          std::uint32_t rank,
                                          std::uint64_t step);
  // Unknown slots are ignored: they may be of an arena before this one.
  void Release(shm::HolderId session, const std::vector<shm::SlotRef>& slots);
  bool Holds(shm::HolderId session, shm::SlotRef slot) const;
  // Steps before `next_step` are trained by the rank.
  void Ack(std::uint32_t rank, std::uint64_t next_step);

  // Ends every wait with kCancelled, and every later one; production stops.
  void Cancel();

  // First error that ended production, or OK.
  absl::Status status() const;
  JobPipelineView View() const;
  std::vector<std::uint64_t> AckedNext() const;  // by rank

 private:
  class Impl;
  explicit JobPipeline(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_JOB_PIPELINE_H_
