#include "server/pipeline/zygote_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_format.h"
#include "common/shm/fd_socket.h"
#include "common/shm/worker_protocol.h"
#include "common/status/status.h"

namespace penstock::pipeline {
namespace {

class SpawnAttributes {
 public:
  SpawnAttributes(int control) {
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK |
                                               POSIX_SPAWN_SETSIGDEF |
                                               POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, control, shm::kControlFd);
    posix_spawn_file_actions_addclosefrom_np(&actions_, shm::kControlFd + 1);
  }
  ~SpawnAttributes() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  const posix_spawnattr_t* attributes() const { return &attributes_; }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

absl::Status WaitForHello(int control, std::uint64_t timeout_ms) {
  pollfd ready = {control, POLLIN, 0};
  int rc;
  while ((rc = poll(&ready, 1, static_cast<int>(timeout_ms))) < 0 &&
         errno == EINTR) {
  }
  if (rc <= 0) {
    return absl::DeadlineExceededError(
        absl::StrFormat("decoder zygote: no hello in %d ms", timeout_ms));
  }
  shm::ControlMessage hello;
  PENSTOCK_ASSIGN_OR_RETURN(const auto got, shm::ReceiveStruct(control, hello));
  if (got.state == shm::ReceiveState::kClosed) {
    return absl::UnavailableError("decoder zygote: ended at once");
  }
  if (hello.magic != shm::kWorkerMagic || hello.version != shm::kWorkerVersion ||
      hello.kind != shm::ControlKind::kHello) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        {.where = "decoder zygote",
         .what = "speaks another version",
         .found = absl::StrFormat("version %d", hello.version),
         .expected = absl::StrFormat("version %d", shm::kWorkerVersion),
         .action = "install penstockd and penstock-decoder of one build"});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ZygoteProcess> StartZygote(const std::string& decoder_path,
                                          std::uint64_t timeout_ms) {
  if (access(decoder_path.c_str(), X_OK) != 0) {
    return MakeError(absl::StatusCode::kNotFound,
                     {.where = decoder_path,
                      .what = "no decoder program here",
                      .found = "no file that may be run",
                      .expected = "penstock-decoder",
                      .action = "install penstock-decoder beside penstockd, or "
                                "give its path"});
  }
  PENSTOCK_ASSIGN_OR_RETURN(auto pair, shm::SocketPair());
  // Above everything that the child closes or renumbers.
  shm::UniqueFd far(fcntl(pair.second.get(), F_DUPFD_CLOEXEC, 64));
  if (!far) return ErrnoError(errno, "decoder zygote: F_DUPFD_CLOEXEC");
  pair.second.Reset();
  const SpawnAttributes spawn(far.get());
  std::string name = "penstock-decoder";
  char* const argv[] = {name.data(), nullptr};
  ZygoteProcess zygote;
  if (const int rc =
          posix_spawn(&zygote.pid, decoder_path.c_str(), spawn.actions(),
                      spawn.attributes(), argv, environ);
      rc != 0) {
    return ErrnoError(rc, "posix_spawn of " + decoder_path);
  }
  far.Reset();
  zygote.control = std::move(pair.first);
  if (auto s = WaitForHello(zygote.control.get(), timeout_ms); !s.ok()) {
    ReapZygote(zygote.pid, /*kill_it=*/true);
    return Annotate(s, decoder_path);
  }
  return zygote;
}

void ReapZygote(pid_t pid, bool kill_it) {
  if (kill_it) kill(pid, SIGKILL);  // not reaped: the pid is still ours
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace penstock::pipeline
