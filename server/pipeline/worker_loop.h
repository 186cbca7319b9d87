#ifndef PENSTOCK_SERVER_PIPELINE_WORKER_LOOP_H_
#define PENSTOCK_SERVER_PIPELINE_WORKER_LOOP_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/shm/fd_socket.h"
#include "common/sync/mutex.h"
#include "server/pipeline/worker_pool.h"
#include "server/pipeline/zygote_process.h"

namespace penstock::pipeline {

using Clock = std::chrono::steady_clock;

// A blocking call's wait for the loop.
class Reply {
 public:
  void Set(absl::Status status);
  absl::Status Wait();

 private:
  sync::Mutex mutex_;
  sync::CondVar ready_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// A job on its way: waiting, running, or between two attempts.
struct PoolJob {
  shm::DecodeJob job;
  JobCallback done;
  std::uint32_t attempts = 0;
  std::uint32_t bad = 0;       // failures that the data may have caused
  std::uint32_t timeouts = 0;  // by the watchdog
  std::uint32_t kills = 0;     // of its worker, from outside
  std::vector<Digest128> digests;  // of this attempt
  std::vector<bool> have;
  std::uint32_t have_count = 0;
};

struct AddArenaCommand {
  ArenaId id;
  int arena_fd, input_fd;
  std::uint64_t arena_bytes, input_bytes;
  std::shared_ptr<Reply> reply;
};
struct DropArenaCommand {
  ArenaId id;
  std::shared_ptr<Reply> reply;
};
struct SubmitCommand {
  ArenaId arena;
  std::unique_ptr<PoolJob> job;
};
using Command = std::variant<AddArenaCommand, DropArenaCommand, SubmitCommand>;

// What callers and the loop share.
struct PoolShared {
  struct Admission {
    std::uint64_t arena_bytes = 0, input_bytes = 0;
    std::uint32_t waiting = 0;
  };
  sync::Mutex mutex;
  absl::Status closed ABSL_GUARDED_BY(mutex);  // not OK: nothing is accepted
  bool stop ABSL_GUARDED_BY(mutex) = false;
  std::map<ArenaId, Admission> arenas ABSL_GUARDED_BY(mutex);
  std::deque<Command> inbox ABSL_GUARDED_BY(mutex);
  WorkerPoolStats stats ABSL_GUARDED_BY(mutex);
  shm::UniqueFd wake;  // eventfd
};

// The pool's loop: owns the zygote, the workers and every job that was accepted.
//
// Threading: Run() on the pool's thread, everything private to it.
// Bounds: see WorkerPool.
class WorkerLoop {
 public:
  WorkerLoop(const WorkerPoolOptions& options, PoolShared& shared,
             ZygoteProcess zygote, std::function<void()> on_zygote_death)
      : options_(options),
        shared_(shared),
        zygote_(std::move(zygote)),
        on_zygote_death_(std::move(on_zygote_death)) {}

  // Until a stop is asked for or the zygote is gone; all jobs are completed and
  // all processes gone when it returns.
  void Run();

 private:
  enum class WorkerState { kStarting, kIdle, kBusy, kEnding };
  struct Worker {
    std::uint64_t id = 0;
    ArenaId arena = 0;
    WorkerState state = WorkerState::kStarting;
    pid_t pid = 0;
    // Stays open until the exit is reported: its end-of-file proves, if need be,
    // that the process writes no more.
    shm::UniqueFd socket;
    bool muted = false;  // nothing it says counts any more
    std::unique_ptr<PoolJob> job;
    std::uint64_t jobs = 0;
    Clock::time_point deadline = Clock::time_point::max();
    shm::JobReason killed_for = shm::JobReason::kOk;  // not kOk: by the pool
    std::string why;
  };
  struct ArenaState {
    std::deque<std::unique_ptr<PoolJob>> queue;
    std::uint32_t live = 0;  // workers whose exit was not reported
    std::shared_ptr<Reply> drop;  // set: being dropped
    bool unmapping = false;
  };
  struct Request {
    shm::ControlKind kind;
    ArenaId arena = 0;
    std::uint64_t worker = 0;
    Clock::time_point deadline;
    std::shared_ptr<Reply> reply;
  };

  // worker_loop.cc: the loop, the zygote and the arenas.
  void Poll();
  int PollTimeoutMs() const;
  void TakeCommands();
  void Handle(AddArenaCommand& command);
  void Handle(DropArenaCommand& command);
  void Handle(SubmitCommand& command);
  void ReadControl();
  void OnControl(const shm::ControlMessage& message);
  void SendRequest(shm::ControlMessage message, std::span<const int> fds,
                   Request request);
  void CheckRequests();
  void StepDrop(ArenaId id);
  void Teardown();
  void AwaitEnd(Worker& worker);
  void Break(std::string why);  // the zygote is of no use any more
  void RunCompletions();
  void UpdateStats();

  // worker_loop_jobs.cc: workers and their jobs.
  void StartWorker(ArenaId arena);
  void StartMissing(ArenaId arena);
  void Dispatch();
  void SendJob(Worker& worker, std::unique_ptr<PoolJob> job);
  void ReadWorker(Worker& worker);
  bool OnReply(Worker& worker, const shm::WorkerReply& reply);
  void OnJobDone(Worker& worker, const shm::WorkerReply& reply);
  void Retire(Worker& worker);
  void KillWorker(Worker& worker, shm::JobReason reason, std::string why);
  void SendKill(const Worker& worker);
  void CheckWatchdogs();
  void OnExited(std::uint64_t worker, int wait_status);
  void AfterDeath(Worker& worker, int wait_status);
  void Retry(ArenaId arena, std::unique_ptr<PoolJob> job);
  void Complete(std::unique_ptr<PoolJob> job, absl::Status status,
                shm::JobReason reason, const shm::WorkerReply* reply = nullptr);

  const WorkerPoolOptions options_;
  PoolShared& shared_;
  ZygoteProcess zygote_;
  std::function<void()> on_zygote_death_;
  bool broken_ = false, stopping_ = false;
  std::string broken_why_;
  std::uint32_t next_request_ = 1;
  std::uint64_t next_worker_ = 1, next_job_ = 1;
  std::uint32_t barren_deaths_ = 0;  // since the last finished job
  std::map<std::uint32_t, Request> requests_;
  std::map<ArenaId, ArenaState> arenas_;
  std::map<std::uint64_t, Worker> workers_;
  std::vector<std::pair<JobCallback, JobResult>> completions_;
  WorkerPoolStats stats_;
};

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_WORKER_LOOP_H_
