#include "server/pipeline/worker_loop.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace penstock::pipeline {

using shm::ControlKind;
using shm::ControlMessage;
using shm::JobReason;

void Reply::Set(absl::Status status) {
  {
    sync::MutexLock lock(mutex_);
    if (set_) return;
    set_ = true;
    status_ = std::move(status);
  }
  ready_.NotifyAll();
}

absl::Status Reply::Wait() {
  sync::MutexLock lock(mutex_);
  while (!set_) ready_.Wait(mutex_);
  return status_;
}

void WorkerLoop::Run() {
  while (!broken_ && !stopping_) {
    Poll();
    TakeCommands();
    CheckWatchdogs();
    CheckRequests();
    Dispatch();
    UpdateStats();
    RunCompletions();
  }
  Teardown();
}

int WorkerLoop::PollTimeoutMs() const {
  auto next = Clock::time_point::max();
  for (const auto& [id, r] : requests_) next = std::min(next, r.deadline);
  for (const auto& [id, w] : workers_) next = std::min(next, w.deadline);
  if (next == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      next - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

void WorkerLoop::Poll() {
  std::vector<pollfd> ready = {{shared_.wake.get(), POLLIN, 0},
                               {zygote_.control.get(), POLLIN, 0}};
  std::vector<std::uint64_t> ids;
  for (const auto& [id, w] : workers_) {
    if (w.muted) continue;
    ready.push_back({w.socket.get(), POLLIN, 0});
    ids.push_back(id);
  }
  if (poll(ready.data(), ready.size(), PollTimeoutMs()) < 0) return;  // EINTR
  if (ready[0].revents != 0) {
    std::uint64_t count;
    (void)!read(shared_.wake.get(), &count, sizeof(count));
  }
  // Replies before exits: a worker may have finished its job before it died.
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ready[i + 2].revents != 0) ReadWorker(workers_.at(ids[i]));
  }
  if (ready[1].revents != 0) ReadControl();
}

void WorkerLoop::TakeCommands() {
  std::deque<Command> commands;
  {
    sync::MutexLock lock(shared_.mutex);
    commands.swap(shared_.inbox);
    stopping_ = shared_.stop;
  }
  for (Command& c : commands) {
    std::visit([this](auto& command) { Handle(command); }, c);
  }
}

void WorkerLoop::Handle(AddArenaCommand& c) {
  const int fds[] = {c.arena_fd, c.input_fd};
  SendRequest({.kind = ControlKind::kMapArena, .arena = c.id,
               .arena_bytes = c.arena_bytes, .input_bytes = c.input_bytes},
              fds, {.kind = ControlKind::kMapArena, .arena = c.id,
                    .reply = c.reply});
}

void WorkerLoop::Handle(DropArenaCommand& c) {
  const auto it = arenas_.find(c.id);
  if (it == arenas_.end() || it->second.drop != nullptr) {
    return c.reply->Set(absl::NotFoundError("worker pool: no such arena"));
  }
  it->second.drop = c.reply;
  while (!it->second.queue.empty()) {
    auto job = std::move(it->second.queue.front());
    it->second.queue.pop_front();
    Complete(std::move(job), absl::CancelledError("the arena was dropped"),
             JobReason::kCancelled);
  }
  for (auto& [id, w] : workers_) {
    if (w.arena == c.id) {
      KillWorker(w, JobReason::kCancelled, "the arena was dropped");
    }
  }
  StepDrop(c.id);
}

void WorkerLoop::Handle(SubmitCommand& c) {
  const auto it = arenas_.find(c.arena);
  if (it == arenas_.end() || it->second.drop != nullptr) {
    return Complete(std::move(c.job),
                    absl::CancelledError("the arena was dropped"),
                    JobReason::kCancelled);
  }
  it->second.queue.push_back(std::move(c.job));
}

void WorkerLoop::SendRequest(ControlMessage message, std::span<const int> fds,
                             Request request) {
  message.request = next_request_++;
  request.deadline =
      Clock::now() + std::chrono::milliseconds(options_.start_timeout_ms);
  requests_[message.request] = std::move(request);
  const auto s = shm::SendStruct(zygote_.control.get(), message, fds,
                                 /*wait=*/false);
  if (!s.ok()) Break("decoder zygote died (" + std::string(s.message()) + ")");
}

void WorkerLoop::CheckRequests() {
  for (const auto& [id, r] : requests_) {
    if (Clock::now() >= r.deadline) {
      return Break(absl::StrFormat("decoder zygote gave no answer in %d ms",
                                   options_.start_timeout_ms));
    }
  }
}

void WorkerLoop::ReadControl() {
  for (;;) {
    ControlMessage message;
    const auto got = shm::ReceiveStruct(zygote_.control.get(), message, 0,
                                        /*wait=*/false);
    if (!got.ok()) return Break("decoder zygote sent nonsense");
    if (got->state == shm::ReceiveState::kNothingYet) return;
    if (got->state == shm::ReceiveState::kClosed) {
      return Break("decoder zygote died");
    }
    if (message.magic != shm::kWorkerMagic ||
        message.version != shm::kWorkerVersion) {
      return Break("decoder zygote sent nonsense");
    }
    OnControl(message);
  }
}

void WorkerLoop::OnControl(const ControlMessage& message) {
  if (message.kind == ControlKind::kExited) {
    return OnExited(message.worker, message.status);
  }
  const auto it = requests_.find(message.request);
  if (message.kind != ControlKind::kDone || it == requests_.end()) {
    return Break("decoder zygote sent nonsense");
  }
  const Request request = std::move(it->second);
  requests_.erase(it);
  absl::Status status;
  if (message.status != 0) {
    status = absl::Status(static_cast<absl::StatusCode>(message.status),
                          "decoder zygote: " + shm::TextOf(message.text));
  }
  switch (request.kind) {
    case ControlKind::kMapArena:
      if (status.ok()) {
        arenas_.try_emplace(request.arena);
        StartMissing(request.arena);
      }
      request.reply->Set(status);
      return;
    case ControlKind::kForkWorker: {
      const auto w = workers_.find(request.worker);
      if (w == workers_.end()) return;
      if (!status.ok()) return Break(std::string(status.message()));
      w->second.pid = message.pid;
      if (w->second.state == WorkerState::kStarting) {
        w->second.state = WorkerState::kIdle;
      }
      return;
    }
    case ControlKind::kDropArena: {
      auto reply = std::move(arenas_.at(request.arena).drop);
      arenas_.erase(request.arena);
      reply->Set(status);
      return;
    }
    default:
      return;
  }
}

// When no process can write to a dropped arena any more, the zygote unmaps it.
void WorkerLoop::StepDrop(ArenaId id) {
  ArenaState& a = arenas_.at(id);
  if (broken_ || a.drop == nullptr || a.live != 0 || a.unmapping) return;
  a.unmapping = true;
  SendRequest({.kind = ControlKind::kDropArena, .arena = id}, {},
              {.kind = ControlKind::kDropArena, .arena = id});
}

void WorkerLoop::Break(std::string why) {
  if (broken_) return;
  broken_ = true;
  broken_why_ = std::move(why);
}

// Ends every process, then completes everything. Closing the control socket ends
// the zygote, its end kills the workers, and a worker's socket reports its end
// only after its memory is unmapped: then nobody writes to any arena any more.
void WorkerLoop::Teardown() {
  const absl::Status end =
      stopping_ ? absl::CancelledError("worker pool: stopped")
                : absl::UnavailableError("worker pool: " + broken_why_ +
                                         "; make a new pool and new arenas");
  std::deque<Command> commands;
  {
    sync::MutexLock lock(shared_.mutex);
    if (shared_.closed.ok()) shared_.closed = end;
    commands.swap(shared_.inbox);
  }
  zygote_.control.Reset();
  ReapZygote(zygote_.pid, /*kill_it=*/true);
  for (auto& [id, w] : workers_) {
    AwaitEnd(w);
    if (w.job) Complete(std::move(w.job), end, JobReason::kCancelled);
  }
  workers_.clear();
  for (auto& [id, a] : arenas_) {
    for (auto& job : a.queue) Complete(std::move(job), end, JobReason::kCancelled);
    a.queue.clear();
    if (a.drop) a.drop->Set(absl::OkStatus());  // unmapped with the zygote
  }
  arenas_.clear();
  for (auto& [id, r] : requests_) {
    if (r.reply) r.reply->Set(end);
  }
  requests_.clear();
  for (Command& c : commands) {
    if (auto* submit = std::get_if<SubmitCommand>(&c)) {
      Complete(std::move(submit->job), end, JobReason::kCancelled);
    } else if (auto* add = std::get_if<AddArenaCommand>(&c)) {
      add->reply->Set(end);
    } else if (auto* drop = std::get_if<DropArenaCommand>(&c)) {
      drop->reply->Set(absl::OkStatus());
    }
  }
  UpdateStats();
  RunCompletions();
  if (!stopping_ && on_zygote_death_) on_zygote_death_();
}

void WorkerLoop::AwaitEnd(Worker& w) {
  shm::WorkerReply ignored;
  auto deadline =
      Clock::now() + std::chrono::milliseconds(options_.start_timeout_ms);
  for (bool killed = false;;) {
    const auto got = shm::ReceiveStruct(w.socket.get(), ignored, 0, false);
    if (got.ok() && got->state == shm::ReceiveState::kClosed) return;
    if (!got.ok() && got.status().code() != absl::StatusCode::kInvalidArgument) {
      return;
    }
    if (!got.ok() || got->state == shm::ReceiveState::kMessage) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        deadline - Clock::now());
    pollfd ready = {w.socket.get(), POLLIN, 0};
    if (left.count() > 0) {
      (void)poll(&ready, 1, static_cast<int>(left.count()));
    } else if (!killed && w.pid > 0) {
      kill(w.pid, SIGKILL);  // its socket is open: the pid is still his
      killed = true;
      deadline += std::chrono::milliseconds(options_.start_timeout_ms);
    } else {
      return;
    }
  }
}

void WorkerLoop::RunCompletions() {
  std::vector<std::pair<JobCallback, JobResult>> completions;
  completions.swap(completions_);
  for (auto& [done, result] : completions) {
    if (done) done(std::move(result));
  }
}

void WorkerLoop::UpdateStats() {
  stats_.workers_alive = stats_.jobs_running = stats_.jobs_queued = 0;
  stats_.worker_pids.clear();
  for (const auto& [id, w] : workers_) {
    stats_.jobs_running += w.job != nullptr;
    if (w.state != WorkerState::kIdle && w.state != WorkerState::kBusy) continue;
    ++stats_.workers_alive;
    stats_.worker_pids.push_back(w.pid);
  }
  for (const auto& [id, a] : arenas_) stats_.jobs_queued += a.queue.size();
  sync::MutexLock lock(shared_.mutex);
  shared_.stats = stats_;
}

}  // namespace penstock::pipeline
