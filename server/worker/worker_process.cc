#include "server/worker/worker_process.h"

#include <signal.h>
#include <unistd.h>

#include <new>
#include <vector>

#include "common/shm/fd_socket.h"
#include "common/shm/worker_protocol.h"
#include "server/worker/confine.h"
#include "server/worker/job_runner.h"

namespace penstock::worker {
namespace {

// kControlFd is the zygote's control socket until here: nothing of it survives.
void KeepOnly(shm::UniqueFd socket) {
  if (dup2(socket.get(), shm::kControlFd) < 0 ||
      close_range(shm::kControlFd + 1, ~0u, 0) != 0) {
    _exit(kExitConfine);
  }
  (void)socket.Release();  // closed just now
}

void ResetSignals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

shm::WorkerReply RunGuarded(JobRunner& runner, const shm::DecodeJob& job) {
  const auto sink = [&](std::uint32_t target, const Digest128& digest) {
    const shm::WorkerReply reply{.target = target, .job = job.id,
                                 .digest_high = digest.high,
                                 .digest_low = digest.low};
    return shm::SendStruct(shm::kControlFd, reply).ok();
  };
  if (job.cpu_limit_ns != 0) LimitCpu(CpuNs(), job.cpu_limit_ns);
  shm::WorkerReply done;
  try {
    done = runner.Run(job, sink);
  } catch (const std::bad_alloc&) {
    done.kind = shm::ReplyKind::kJobDone;
    done.job = job.id;
    done.reason = shm::JobReason::kNoMemory;
    shm::PutText("no memory", done.text);
  }
  if (job.cpu_limit_ns != 0) LimitCpu(0, 0);
  return done;
}

}  // namespace

void RunWorker(pid_t zygote, shm::UniqueFd socket, const shm::Mapping& arena,
               const shm::Mapping& input) {
  KeepOnly(std::move(socket));
  ResetSignals();
  if (getppid() != zygote) _exit(kExitOrphan);
  if (!Confine(zygote)) _exit(kExitConfine);

  JobRunner runner(arena.bytes(), input.bytes());
  std::vector<std::uint8_t> buffer(shm::kJobBytesMax);
  for (;;) {
    const auto got = shm::ReceiveMessage(shm::kControlFd, buffer);
    if (!got.ok()) _exit(kExitProtocol);
    if (got->state == shm::ReceiveState::kClosed) _exit(kExitEndOfFile);
    const auto job = shm::ParseJob(std::span(buffer).first(got->bytes));
    if (!job.ok()) _exit(kExitProtocol);
    const shm::WorkerReply done = RunGuarded(runner, *job);
    if (!shm::SendStruct(shm::kControlFd, done).ok()) _exit(kExitEndOfFile);
  }
}

}  // namespace penstock::worker
