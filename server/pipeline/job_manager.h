#ifndef PENSTOCK_SERVER_PIPELINE_JOB_MANAGER_H_
#define PENSTOCK_SERVER_PIPELINE_JOB_MANAGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/data_ranks.h"
#include "server/io/read_engine.h"
#include "server/pipeline/job_pipeline.h"
#include "server/store/job_store.h"

namespace penstock::pipeline {

// A feed made ready: parsed, datasets open, selection done.
struct LoadedFeed {
  std::shared_ptr<const FeedPlan> plan;
  std::string name;
  std::string order_digest, content_digest, selection_digest;  // hex
  std::vector<std::string> dataset_ids;                        // hex
  std::vector<std::string> notes;
  // Whether its datasets' folders still hold what was loaded.
  std::function<bool()> current;
};

// Parses a feed's text; `where` names it in messages, relative dataset paths
// start at `dir`.
using FeedLoader = std::function<absl::StatusOr<LoadedFeed>(
    const std::string& text, const std::string& where, const std::string& dir)>;

struct JobManagerOptions {
  WorkerPoolOptions workers;
  std::uint64_t arena_bytes = 1ull << 30;  // of all jobs
  std::uint64_t input_bytes = 256ull << 20;
  std::uint32_t prefetch_steps = 4;
};

struct AttachArgs {
  std::string session;  // empty: a remote rank; a session is made
  std::string job, feed, feed_where, feed_dir, incarnation, resume, peer;
  std::uint32_t data_rank = 0;
  plan::DataRanks ranks;
  plan::CpCut cp;
  RankPlace place;
  bool ack_leader = true, explicit_ack = false, takeover = false;
  std::optional<std::uint64_t> position;
};

struct AttachResult {
  std::string session, job, cursor_head;
  std::uint64_t generation = 0, start_step = 0, total_steps = 0;
  std::uint64_t arena_id = 0, arena_bytes = 0;
  std::uint64_t global_batch = 0, microbatches = 1;
  std::uint64_t batch_bytes = 0, unit_stride = 0,
                units = 0;  // as in BatchLayout
  std::vector<ShapeLayout> shapes;
  std::string order_digest, content_digest, selection_digest;
  std::vector<std::string> dataset_ids, notes;
};

struct ArenaSlot {
  std::uint64_t arena = 0;
  shm::SlotRef slot;
};

struct SessionView {
  std::uint32_t data_rank = 0;
  std::string peer;
  std::uint64_t position = 0, held_slots = 0;
  bool remote = false;
};
struct JobView {
  std::string job;
  std::uint64_t generation = 0;
  std::uint32_t data_world = 0;
  JobPipelineView pipeline;
  std::vector<SessionView> sessions;
};

// Jobs and sessions of one daemon: decides attaches against the store, owns a
// pipeline for each open generation, and knows who holds what.
//
// Threading: any thread; Next() waits without the manager's lock.
// Ownership: borrows store and engine; owns worker pool and pipelines.
// Sessions end by CloseSession() (its process is gone, or it detached), or when
//   their generation is fenced or their pipeline lost its workers: then calls
//   answer kNotFound and a client attaches again.
class JobManager {
 public:
  // As WorkerPool::Start.
  static absl::StatusOr<std::unique_ptr<JobManager>> Create(
      JobManagerOptions options, FeedLoader loader, store::JobStore& store,
      io::ReadEngine& engine);
  ~JobManager();

  // A session of a local process, before it attaches.
  std::string OpenSession(bool remote);
  void CloseSession(const std::string& session);

  absl::StatusOr<AttachResult> Attach(const AttachArgs& args);
  // Empty at the end of the data. Steps before `acked_next` are trained; absent:
  // those before `step`, unless the session acknowledges explicitly.
  //
  // kNotFound: no such session
  absl::StatusOr<std::optional<PublishedBatch>> Next(
      const std::string& session, std::uint64_t step, std::uint64_t timeout_ms,
      const std::vector<ArenaSlot>& release,
      std::optional<std::uint64_t> acked_next);
  // The batch of a step when it is published: taken as by Next(), without a wait.
  std::optional<PublishedBatch> TakeReady(const std::string& session,
                                          std::uint64_t step);
  absl::Status Release(const std::string& session,
                       const std::vector<ArenaSlot>& slots);
  absl::Status Ack(const std::string& session, std::uint64_t step);
  absl::Status Checkpoint(const std::string& session, const std::string& name,
                          std::uint64_t next_step);

  // The bytes of a slot that the session holds, with what keeps them there.
  struct SlotBytes {
    std::shared_ptr<const void> keep;
    std::span<const std::uint8_t> bytes;
  };
  absl::StatusOr<SlotBytes> Bytes(const std::string& session, ArenaSlot slot);
  // Descriptor of the session's arena; valid while `keep` lives.
  struct ArenaHandle {
    std::shared_ptr<const void> keep;
    std::uint64_t id = 0, bytes = 0;
    int fd = -1;
  };
  absl::StatusOr<ArenaHandle> ArenaOf(const std::string& session);
  // Called with the session's handle inside Attach, before it returns.
  void OnArena(std::function<void(const std::string& session,
                                  const ArenaHandle& arena)> callback);

  // Refuses new attaches.
  void Drain();
  bool draining() const;
  std::vector<JobView> Jobs() const;
  WorkerPoolStats worker_stats() const;
  std::uint64_t arena_bytes() const;

 private:
  class Impl;
  explicit JobManager(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_JOB_MANAGER_H_
