#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstring>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "server/pipeline/worker_loop.h"

namespace penstock::pipeline {
namespace {

using shm::JobReason;

constexpr std::uint32_t kBadMax = 2;           // DESIGN §5: twice, two workers
constexpr std::uint32_t kBarrenDeathsMax = 16;

std::string DescribeEnd(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return absl::StrFormat("signal %d (%s)", WTERMSIG(wait_status),
                           strsignal(WTERMSIG(wait_status)));
  }
  return absl::StrFormat("exit code %d", WEXITSTATUS(wait_status));
}

absl::StatusCode CodeOf(JobReason reason) {
  switch (reason) {
    case JobReason::kOk: return absl::StatusCode::kOk;
    case JobReason::kBadJob: return absl::StatusCode::kInvalidArgument;
    case JobReason::kUnsupported: return absl::StatusCode::kUnimplemented;
    case JobReason::kNoMemory: return absl::StatusCode::kResourceExhausted;
    case JobReason::kTimeout: return absl::StatusCode::kDeadlineExceeded;
    case JobReason::kCancelled: return absl::StatusCode::kCancelled;
    case JobReason::kBlockDamaged:
    case JobReason::kHashDiffers:
    case JobReason::kFrameMissing:
    case JobReason::kCpuLimit:
    case JobReason::kWorkerDied:
      return absl::StatusCode::kDataLoss;
  }
  return absl::StatusCode::kInternal;
}

}  // namespace

void WorkerLoop::StartWorker(ArenaId arena) {
  auto pair = shm::SocketPair();
  if (!pair.ok()) return Break(std::string(pair.status().message()));
  Worker w;
  w.id = next_worker_++;
  w.arena = arena;
  w.socket = std::move(pair->first);
  const std::uint64_t id = w.id;
  workers_[id] = std::move(w);
  ++arenas_.at(arena).live;
  const int fds[] = {pair->second.get()};
  SendRequest({.kind = shm::ControlKind::kForkWorker, .arena = arena,
               .worker = id},
              fds, {.kind = shm::ControlKind::kForkWorker, .arena = arena,
                    .worker = id});
}

// Replaces those that are ending without waiting for their end.
void WorkerLoop::StartMissing(ArenaId arena) {
  if (broken_ || arenas_.at(arena).drop != nullptr) return;
  std::uint32_t useful = 0;
  for (const auto& [id, w] : workers_) {
    useful += w.arena == arena && w.state != WorkerState::kEnding;
  }
  for (; useful < options_.workers && !broken_; ++useful) StartWorker(arena);
}

void WorkerLoop::Dispatch() {
  for (auto& [id, w] : workers_) {
    if (w.state != WorkerState::kIdle) continue;
    auto& queue = arenas_.at(w.arena).queue;
    if (queue.empty()) continue;
    auto job = std::move(queue.front());
    queue.pop_front();
    {
      sync::MutexLock lock(shared_.mutex);
      auto it = shared_.arenas.find(w.arena);
      // A retried job was counted down before; it is counted once.
      if (it != shared_.arenas.end() && job->attempts == 0) --it->second.waiting;
    }
    SendJob(w, std::move(job));
  }
}

void WorkerLoop::SendJob(Worker& w, std::unique_ptr<PoolJob> job) {
  job->job.id = next_job_++;  // of this attempt: a late reply fits no other
  ++job->attempts;
  job->digests.assign(job->job.targets.size(), {});
  job->have.assign(job->job.targets.size(), false);
  job->have_count = 0;
  const auto bytes = shm::EncodeJob(job->job);
  if (!bytes.ok()) {  // Submit() checked it; it cannot get here
    return Complete(std::move(job), bytes.status(), JobReason::kBadJob);
  }
  const auto s = shm::SendMessage(w.socket.get(), *bytes, {}, /*wait=*/false);
  if (!s.ok()) {  // it died while idle: that says nothing about the job
    Retry(w.arena, std::move(job));
    return KillWorker(w, JobReason::kWorkerDied, "its socket failed");
  }
  w.job = std::move(job);
  w.state = WorkerState::kBusy;
  ++w.jobs;
  if (options_.watchdog_ms != 0) {
    w.deadline = Clock::now() + std::chrono::milliseconds(options_.watchdog_ms);
  }
}

void WorkerLoop::ReadWorker(Worker& w) {
  while (!w.muted) {
    shm::WorkerReply reply;  // a private copy: checked once, used once
    const auto got = shm::ReceiveStruct(w.socket.get(), reply, 0, /*wait=*/false);
    if (got.ok() && got->state == shm::ReceiveState::kNothingYet) return;
    if (got.ok() && got->state == shm::ReceiveState::kClosed) {
      // The zygote says how it ended; one that only closed its socket ends now.
      w.muted = true;
      w.state = WorkerState::kEnding;
      w.deadline = Clock::time_point::max();
      SendKill(w);
      return StartMissing(w.arena);
    }
    if (!got.ok() || !OnReply(w, reply)) {
      return KillWorker(w, JobReason::kWorkerDied, "sent a wrong reply");
    }
  }
}

// False when the reply breaks the protocol.
bool WorkerLoop::OnReply(Worker& w, const shm::WorkerReply& reply) {
  if (reply.magic != shm::kWorkerMagic || reply.version != shm::kWorkerVersion ||
      w.job == nullptr || reply.job != w.job->job.id) {
    return false;
  }
  PoolJob& job = *w.job;
  if (reply.kind == shm::ReplyKind::kFrame) {
    if (reply.target >= job.have.size() || job.have[reply.target]) return false;
    job.have[reply.target] = true;
    job.digests[reply.target] = {reply.digest_high, reply.digest_low};
    ++job.have_count;
    return true;
  }
  if (reply.kind != shm::ReplyKind::kJobDone ||
      reply.reason > JobReason::kNoMemory ||
      reply.frames_done != job.have_count ||
      (reply.reason == JobReason::kOk && job.have_count != job.have.size())) {
    return false;
  }
  OnJobDone(w, reply);
  return true;
}

void WorkerLoop::OnJobDone(Worker& w, const shm::WorkerReply& reply) {
  auto job = std::move(w.job);
  w.deadline = Clock::time_point::max();
  if (w.state == WorkerState::kBusy) w.state = WorkerState::kIdle;
  barren_deaths_ = 0;
  stats_.busy_ns += reply.cpu_ns;
  stats_.frames_decoded += reply.frames_decoded;
  const ArenaId arena = w.arena;
  if (reply.reason == JobReason::kOk) {
    if (w.jobs >= options_.jobs_per_worker && w.state == WorkerState::kIdle) {
      ++stats_.worker_recycled;
      Retire(w);
    }
    return Complete(std::move(job), absl::OkStatus(), reply.reason, &reply);
  }
  const bool may_be_worker = reply.reason == JobReason::kHashDiffers ||
                             reply.reason == JobReason::kFrameMissing ||
                             reply.reason == JobReason::kCpuLimit ||
                             reply.reason == JobReason::kNoMemory;
  if (may_be_worker) {
    // Its decoder's state is not trusted any more; another worker tries.
    if (w.state == WorkerState::kIdle) Retire(w);
    if (++job->bad < kBadMax) return Retry(arena, std::move(job));
  }
  Complete(std::move(job),
           absl::Status(CodeOf(reply.reason),
                        absl::StrFormat("decoder: %s (%s)",
                                        shm::TextOf(reply.text),
                                        shm::JobReasonName(reply.reason))),
           reply.reason, &reply);
}

// Lets an idle worker end by end-of-file.
void WorkerLoop::Retire(Worker& w) {
  w.state = WorkerState::kEnding;
  w.killed_for = JobReason::kOk;
  w.why = "retired";
  w.muted = true;
  (void)shutdown(w.socket.get(), SHUT_WR);
  StartMissing(w.arena);
}

void WorkerLoop::KillWorker(Worker& w, JobReason reason, std::string why) {
  if (w.killed_for == JobReason::kOk) {
    w.killed_for = reason;
    w.why = std::move(why);
  }
  w.state = WorkerState::kEnding;
  w.deadline = Clock::time_point::max();
  w.muted = true;
  SendKill(w);
  StartMissing(w.arena);
}

void WorkerLoop::SendKill(const Worker& w) {
  const shm::ControlMessage message{.kind = shm::ControlKind::kKillWorker,
                                    .arena = w.arena, .worker = w.id};
  const auto s = shm::SendStruct(zygote_.control.get(), message, {}, false);
  if (!s.ok()) Break("decoder zygote died");
}

void WorkerLoop::CheckWatchdogs() {
  const auto now = Clock::now();
  std::vector<std::uint64_t> late;
  for (const auto& [id, w] : workers_) {
    if (w.deadline <= now) late.push_back(id);
  }
  for (const std::uint64_t id : late) {
    ++stats_.worker_timeouts;
    KillWorker(workers_.at(id), JobReason::kTimeout,
               absl::StrFormat("no end in %d ms", options_.watchdog_ms));
  }
}

void WorkerLoop::OnExited(std::uint64_t id, int wait_status) {
  const auto it = workers_.find(id);
  if (it == workers_.end()) return Break("decoder zygote sent nonsense");
  ReadWorker(it->second);  // what it said before it died counts
  Worker w = std::move(it->second);
  workers_.erase(it);
  ArenaState& arena = arenas_.at(w.arena);
  --arena.live;
  AfterDeath(w, wait_status);
  StartMissing(w.arena);
  StepDrop(w.arena);
}

void WorkerLoop::AfterDeath(Worker& w, int wait_status) {
  const bool ours = w.killed_for != JobReason::kOk || w.why == "retired";
  const bool killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
  if (!ours && killed) ++stats_.worker_kills;
  if (w.killed_for == JobReason::kWorkerDied || (!ours && !killed)) {
    ++stats_.worker_crashes;
    if (w.job == nullptr && ++barren_deaths_ > kBarrenDeathsMax) {
      Break("decoder workers end again and again (" + DescribeEnd(wait_status) +
            ")");
    }
  }
  if (w.job == nullptr) return;
  auto job = std::move(w.job);
  if (w.killed_for == JobReason::kCancelled) {
    return Complete(std::move(job), absl::CancelledError("worker pool: " + w.why),
                    JobReason::kCancelled);
  }
  if (w.killed_for == JobReason::kTimeout) {
    if (++job->timeouts < options_.timeouts_max) {
      return Retry(w.arena, std::move(job));
    }
    return Complete(std::move(job),
                    absl::DeadlineExceededError(absl::StrFormat(
                        "decoder: %s, %d times; the host is overloaded, or raise "
                        "the watchdog", w.why, options_.timeouts_max)),
                    JobReason::kTimeout);
  }
  if (!ours && killed) {
    // Somebody's kill -9 or the memory limit: not the data's fault, and taking
    // it for bad data would change bytes.
    if (++job->kills < options_.kills_max) return Retry(w.arena, std::move(job));
    return Complete(std::move(job),
                    absl::UnavailableError(absl::StrFormat(
                        "decoder: its worker was killed %d times from outside; "
                        "look for the memory limit", job->kills)),
                    JobReason::kWorkerDied);
  }
  const bool cpu = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGXCPU;
  if (++job->bad < kBadMax) return Retry(w.arena, std::move(job));
  Complete(std::move(job),
           absl::DataLossError(absl::StrFormat(
               "decoder: the job ended two workers, the last by %s%s%s",
               DescribeEnd(wait_status), w.why.empty() ? "" : ": ", w.why)),
           cpu ? JobReason::kCpuLimit : JobReason::kWorkerDied);
}

void WorkerLoop::Retry(ArenaId arena, std::unique_ptr<PoolJob> job) {
  ++stats_.jobs_retried;
  auto& a = arenas_.at(arena);
  if (a.drop != nullptr) {
    return Complete(std::move(job), absl::CancelledError("the arena was dropped"),
                    JobReason::kCancelled);
  }
  a.queue.push_front(std::move(job));
}

void WorkerLoop::Complete(std::unique_ptr<PoolJob> job, absl::Status status,
                          JobReason reason, const shm::WorkerReply* reply) {
  JobResult result{.status = std::move(status), .reason = reason,
                   .attempts = job->attempts};
  if (result.status.ok()) {
    ++stats_.jobs_done;
    stats_.frames += job->have_count;
    result.digests = std::move(job->digests);
  } else {
    ++stats_.jobs_failed;
  }
  if (reply != nullptr) {
    result.frames_decoded = reply->frames_decoded;
    result.cpu_ns = reply->cpu_ns;
  }
  completions_.emplace_back(std::move(job->done), std::move(result));
}

}  // namespace penstock::pipeline
