#include "server/pipeline/worker_pool.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "server/pipeline/worker_loop.h"

namespace penstock::pipeline {

class WorkerPool::Impl {
 public:
  Impl(WorkerPoolOptions options, shm::UniqueFd wake, ZygoteProcess zygote,
       std::function<void()> on_zygote_death)
      : options_(std::move(options)),
        zygote_pid_(zygote.pid),
        loop_(options_, shared_, std::move(zygote), std::move(on_zygote_death)) {
    shared_.wake = std::move(wake);
    thread_ = std::thread([this] { loop_.Run(); });
  }

  // Queues a command; false when the pool is closed.
  absl::Status Send(Command command) {
    {
      sync::MutexLock lock(shared_.mutex);
      if (!shared_.closed.ok()) return shared_.closed;
      shared_.inbox.push_back(std::move(command));
    }
    Wake();
    return absl::OkStatus();
  }

  absl::StatusOr<ArenaId> AddArena(const shm::Arena& arena,
                                   const shm::Arena& input) {
    if (arena.sealed()) {
      return MakeError(absl::StatusCode::kFailedPrecondition,
                       {.where = "worker pool",
                        .what = "the arena is sealed: nobody can map it for "
                                "writing any more",
                        .found = "a sealed arena",
                        .expected = "one that is not sealed yet",
                        .action = "add it first, seal it then"});
    }
    const ArenaId id = NextArena();
    auto reply = std::make_shared<Reply>();
    PENSTOCK_RETURN_IF_ERROR(
        Send(AddArenaCommand{id, arena.fd(), input.fd(), arena.size(),
                             input.size(), reply}));
    PENSTOCK_RETURN_IF_ERROR(reply->Wait());
    sync::MutexLock lock(shared_.mutex);
    shared_.arenas[id] = {arena.size(), input.size(), 0};
    return id;
  }

  absl::Status DropArena(ArenaId arena) {
    {
      sync::MutexLock lock(shared_.mutex);
      if (shared_.arenas.erase(arena) == 0) {
        return absl::NotFoundError("worker pool: no such arena");
      }
    }
    auto reply = std::make_shared<Reply>();
    // A closed pool has unmapped it already, or will before Stop() returns.
    if (!Send(DropArenaCommand{arena, reply}).ok()) {
      Join();
      return absl::OkStatus();
    }
    return reply->Wait();
  }

  absl::Status Submit(ArenaId arena, shm::DecodeJob job, JobCallback done) {
    auto pool_job = std::make_unique<PoolJob>();
    pool_job->job = std::move(job);
    pool_job->done = std::move(done);
    std::uint64_t arena_bytes = 0, input_bytes = 0;
    {
      sync::MutexLock lock(shared_.mutex);
      const auto it = shared_.arenas.find(arena);
      if (it != shared_.arenas.end()) {
        arena_bytes = it->second.arena_bytes;
        input_bytes = it->second.input_bytes;
      }
    }
    if (arena_bytes != 0) {
      PENSTOCK_RETURN_IF_ERROR(
          shm::CheckJob(pool_job->job, arena_bytes, input_bytes));
    }
    {
      sync::MutexLock lock(shared_.mutex);
      if (!shared_.closed.ok()) return shared_.closed;
      const auto it = shared_.arenas.find(arena);
      if (it == shared_.arenas.end()) {
        return absl::NotFoundError("worker pool: no such arena");
      }
      auto& a = it->second;
      if (a.waiting >= options_.queue_max) {
        return absl::ResourceExhaustedError(absl::StrFormat(
            "worker pool: %d jobs wait already", a.waiting));
      }
      ++a.waiting;
      shared_.inbox.push_back(SubmitCommand{arena, std::move(pool_job)});
    }
    Wake();
    return absl::OkStatus();
  }

  void Stop() {
    {
      sync::MutexLock lock(shared_.mutex);
      shared_.stop = true;
      if (shared_.closed.ok()) {
        shared_.closed = absl::UnavailableError("worker pool: stopped");
      }
    }
    Wake();
    Join();
  }

  WorkerPoolStats stats() {
    sync::MutexLock lock(shared_.mutex);
    return shared_.stats;
  }
  std::int32_t zygote_pid() const { return zygote_pid_; }

 private:
  void Wake() {
    const std::uint64_t one = 1;
    (void)!write(shared_.wake.get(), &one, sizeof(one));
  }
  void Join() {
    sync::MutexLock lock(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }
  ArenaId NextArena() {
    sync::MutexLock lock(shared_.mutex);
    return next_arena_++;
  }

  const WorkerPoolOptions options_;
  const std::int32_t zygote_pid_;
  PoolShared shared_;
  ArenaId next_arena_ ABSL_GUARDED_BY(shared_.mutex) = 1;
  WorkerLoop loop_;
  sync::Mutex join_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(join_mutex_);
};

WorkerPool::WorkerPool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WorkerPool::~WorkerPool() { Stop(); }

absl::StatusOr<std::unique_ptr<WorkerPool>> WorkerPool::Start(
    WorkerPoolOptions options, std::function<void()> on_zygote_death) {
  if (options.workers == 0 || options.queue_max == 0) {
    return absl::InvalidArgumentError(
        "worker pool: at least one worker and a queue of one");
  }
  shm::UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return ErrnoError(errno, "worker pool: eventfd");
  PENSTOCK_ASSIGN_OR_RETURN(
      auto zygote, StartZygote(options.decoder_path, options.start_timeout_ms));
  return std::unique_ptr<WorkerPool>(new WorkerPool(
      std::make_unique<Impl>(std::move(options), std::move(wake),
                             std::move(zygote), std::move(on_zygote_death))));
}

absl::StatusOr<ArenaId> WorkerPool::AddArena(const shm::Arena& arena,
                                             const shm::Arena& input) {
  return impl_->AddArena(arena, input);
}
absl::Status WorkerPool::DropArena(ArenaId arena) {
  return impl_->DropArena(arena);
}
absl::Status WorkerPool::Submit(ArenaId arena, shm::DecodeJob job,
                                JobCallback done) {
  return impl_->Submit(arena, std::move(job), std::move(done));
}
void WorkerPool::Stop() { impl_->Stop(); }
WorkerPoolStats WorkerPool::stats() const { return impl_->stats(); }
std::int32_t WorkerPool::zygote_pid() const { return impl_->zygote_pid(); }

}  // namespace penstock::pipeline
