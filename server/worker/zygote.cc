#include "server/worker/zygote.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_format.h"
#include "common/shm/fd_socket.h"
#include "common/status/status.h"
#include "server/worker/worker_process.h"

namespace penstock::worker {
namespace {

using shm::ControlKind;
using shm::ControlMessage;

constexpr int kExitOk = 0, kExitBroken = 3;

bool Send(const ControlMessage& message) {
  return shm::SendStruct(shm::kControlFd, message).ok();
}

// SIGCHLD as something to poll for.
shm::UniqueFd ChildSignals() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  return shm::UniqueFd(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

int Zygote::Run() {
  const shm::UniqueFd children = ChildSignals();
  if (!children || !Send({.kind = ControlKind::kHello, .pid = getpid()})) {
    return kExitBroken;
  }
  for (;;) {
    pollfd ready[2] = {{shm::kControlFd, POLLIN, 0}, {children.get(), POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 && errno != EINTR) return kExitBroken;
    if (ready[1].revents != 0) {
      signalfd_siginfo ignored;
      while (read(children.get(), &ignored, sizeof(ignored)) > 0) {
      }
      Reap();
    }
    if (ready[0].revents == 0) continue;
    ControlMessage message;
    auto got = shm::ReceiveStruct(shm::kControlFd, message, 2, /*wait=*/false);
    if (!got.ok()) return kExitBroken;
    if (got->state == shm::ReceiveState::kClosed) return kExitOk;
    if (got->state == shm::ReceiveState::kNothingYet) continue;
    if (message.magic != shm::kWorkerMagic ||
        message.version != shm::kWorkerVersion ||
        !Handle(message, std::move(got->fds)).ok()) {
      return kExitBroken;
    }
  }
}

// An error ends the zygote; what the daemon asked for in vain is a reply.
absl::Status Zygote::Handle(const ControlMessage& message,
                            std::vector<shm::UniqueFd> fds) {
  ControlMessage reply{.kind = ControlKind::kDone, .request = message.request,
                       .arena = message.arena, .worker = message.worker};
  absl::Status status;
  switch (message.kind) {
    case ControlKind::kMapArena:
      status = MapArena(message, fds);
      break;
    case ControlKind::kDropArena:
      arenas_.erase(message.arena);
      break;
    case ControlKind::kForkWorker:
      status = ForkWorker(message, std::move(fds), reply.pid);
      break;
    case ControlKind::kKillWorker:
      KillWorker(message.worker);
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError("zygote: unknown message");
  }
  reply.status = static_cast<std::int32_t>(status.code());
  const auto text = status.message();
  shm::PutText({text.data(), text.size()}, reply.text);
  return Send(reply) ? absl::OkStatus() : absl::UnavailableError("daemon gone");
}

absl::Status Zygote::MapArena(const ControlMessage& message,
                              const std::vector<shm::UniqueFd>& fds) {
  if (fds.size() != 2 || arenas_.count(message.arena) != 0) {
    return absl::InvalidArgumentError("zygote: two descriptors, a new arena");
  }
  Arena a;
  PENSTOCK_ASSIGN_OR_RETURN(
      a.arena, shm::Mapping::Map(fds[0].get(), message.arena_bytes,
                                 shm::Access::kReadWrite, "arena"));
  PENSTOCK_ASSIGN_OR_RETURN(
      a.input, shm::Mapping::Map(fds[1].get(), message.input_bytes,
                                 shm::Access::kRead, "input area"));
  arenas_.emplace(message.arena, std::move(a));
  return absl::OkStatus();
}

absl::Status Zygote::ForkWorker(const ControlMessage& message,
                                std::vector<shm::UniqueFd> fds, pid_t& pid) {
  const auto arena = arenas_.find(message.arena);
  if (fds.size() != 1 || arena == arenas_.end()) {
    return absl::InvalidArgumentError("zygote: one descriptor, a known arena");
  }
  const pid_t self = getpid();
  pid = fork();
  if (pid < 0) return ErrnoError(errno, "zygote: fork");
  if (pid == 0) {
    // One arena only: a compromised worker can spoil its own job, no other.
    const Arena own = std::move(arena->second);
    arenas_.clear();
    RunWorker(self, std::move(fds[0]), own.arena, own.input);
  }
  workers_[pid] = message.worker;
  return absl::OkStatus();
}

void Zygote::KillWorker(std::uint64_t worker) {
  for (const auto& [pid, id] : workers_) {
    if (id == worker) kill(pid, SIGKILL);  // not reaped: the pid is his
  }
}

void Zygote::Reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto it = workers_.find(pid);
    if (it == workers_.end()) continue;
    (void)Send({.kind = ControlKind::kExited, .worker = it->second, .pid = pid,
                .status = status});
    workers_.erase(it);
  }
}

}  // namespace penstock::worker
