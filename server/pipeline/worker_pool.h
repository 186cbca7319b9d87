#ifndef PENSTOCK_SERVER_PIPELINE_WORKER_POOL_H_
#define PENSTOCK_SERVER_PIPELINE_WORKER_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/shm/arena.h"
#include "common/shm/worker_protocol.h"
#include "common/types/ids.h"

namespace penstock::pipeline {

struct WorkerPoolOptions {
  std::string decoder_path;       // penstock-decoder
  std::uint32_t workers = 2;      // of each arena
  std::uint32_t queue_max = 64;   // jobs of an arena that wait for a worker
  // A job that takes longer by the wall clock gets its worker restarted and is
  // run again; it says nothing about the data (DESIGN §5). 0: never.
  std::uint64_t watchdog_ms = 60'000;
  std::uint32_t timeouts_max = 3;  // then the job fails with kDeadlineExceeded
  std::uint32_t kills_max = 16;    // SIGKILLs from outside; then kUnavailable
  std::uint64_t jobs_per_worker = 4096;  // then a fresh process
  std::uint64_t start_timeout_ms = 10'000;  // of the zygote and its replies
};

struct JobResult {
  // OK, or
  // kDataLoss: block damaged; hash differs, frame missing, CPU limit or a crash
  //   in two different workers
  // kUnimplemented, kInvalidArgument: not decodable here, impossible job
  // kDeadlineExceeded, kResourceExhausted: watchdog, no memory; not the data
  // kUnavailable: the zygote died, or workers were killed again and again
  // kCancelled: Stop() or DropArena()
  absl::Status status;
  shm::JobReason reason = shm::JobReason::kOk;
  std::vector<Digest128> digests;  // one a target, XXH3-128 of its bytes
  std::uint32_t frames_decoded = 0;
  std::uint32_t attempts = 0;
  std::uint64_t cpu_ns = 0;  // of the last attempt
};
using JobCallback = std::function<void(JobResult)>;
using ArenaId = std::uint64_t;

struct WorkerPoolStats {
  std::uint64_t jobs_done = 0, jobs_failed = 0, jobs_retried = 0;
  std::uint64_t frames = 0;          // targets written
  std::uint64_t frames_decoded = 0;
  std::uint64_t worker_crashes = 0;  // ended by itself or by a fault
  std::uint64_t worker_kills = 0;    // SIGKILL that was not ours
  std::uint64_t worker_timeouts = 0, worker_recycled = 0;
  std::uint64_t busy_ns = 0;         // worker CPU
  std::uint32_t workers_alive = 0, jobs_running = 0, jobs_queued = 0;
  std::vector<std::int32_t> worker_pids;
};

// Decodes in worker processes, which write finished pixels into arenas.
//
// Threading: any thread may call; callbacks run on the pool's own thread, which
//   they must not keep: record and return (they may call Submit). AddArena,
//   DropArena and Stop block, and must not be called from a callback.
// Ownership: borrows arena and input until DropArena or Stop has returned. The
//   blocks of a job stay untouched in the input area until its callback, and
//   its destinations may be written until then, also when it fails.
// Bounds: `workers` jobs running and `queue_max` waiting for each arena; then
//   Submit says kResourceExhausted.
// Stopping: Stop() refuses new jobs, completes those that wait with kCancelled,
//   ends the workers, completes what ran with kCancelled, reaps the zygote.
// Failure: a worker that dies is replaced and its job is run again, which gives
//   the same bytes. When the zygote dies, its arenas can be mapped by nobody
//   any more (they are sealed): the pool ends its workers, completes every job
//   with kUnavailable "decoder zygote died", refuses new ones likewise, and
//   calls on_zygote_death; the daemon then makes a new pool and new arenas.
class WorkerPool {
 public:
  // Starts the zygote and waits for its hello.
  //
  // kNotFound: no program at decoder_path; kUnavailable: it ended at once;
  // kDeadlineExceeded: no hello
  static absl::StatusOr<std::unique_ptr<WorkerPool>> Start(
      WorkerPoolOptions options, std::function<void()> on_zygote_death = {});
  ~WorkerPool();  // calls Stop()
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Hands both areas to the zygote, which maps the arena for writing, so it
  // must not be sealed yet: seal it when this has returned. `input` may be
  // sealed or not; workers only read it. Workers start now.
  //
  // kFailedPrecondition: sealed already; kUnavailable: zygote died
  absl::StatusOr<ArenaId> AddArena(const shm::Arena& arena,
                                   const shm::Arena& input);
  // Completes the arena's jobs with kCancelled, ends its workers and unmaps it
  // in the zygote; blocks until none of them can write to it any more.
  absl::Status DropArena(ArenaId arena);

  // Queues a job; `done` is called exactly once, unless this returns an error.
  //
  // kInvalidArgument: CheckJob says no; kNotFound: no such arena
  // kResourceExhausted: the queue is full, ask again after a callback
  // kUnavailable: stopped, or the zygote died
  absl::Status Submit(ArenaId arena, shm::DecodeJob job, JobCallback done);

  void Stop();

  WorkerPoolStats stats() const;
  std::int32_t zygote_pid() const;

 private:
  class Impl;
  explicit WorkerPool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_WORKER_POOL_H_
