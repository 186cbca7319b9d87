#include "server/worker/confine.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

namespace penstock::worker {
namespace {

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)

// Memory, the socket, time, limits of its own, and the end.
constexpr int kAllowed[] = {
    SYS_recvmsg,       SYS_sendmsg,      SYS_mmap,        SYS_munmap,
    SYS_mremap,        SYS_mprotect,     SYS_brk,         SYS_madvise,
    SYS_futex,         SYS_clock_gettime, SYS_prlimit64,  SYS_setrlimit,
    SYS_getrlimit,     SYS_rt_sigreturn, SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_exit,        SYS_exit_group,  SYS_getpid,
    SYS_gettid,        SYS_sched_getaffinity, SYS_sched_yield, SYS_write,
    SYS_close,         SYS_restart_syscall,
};

bool FilterSystemCalls() {
  constexpr std::size_t n = std::size(kAllowed);
  sock_filter code[n + 6] = {};
  std::size_t at = 0;
  auto load = [](std::uint32_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset);
  };
  code[at++] = load(offsetof(seccomp_data, arch));
  code[at++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
  code[at++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  code[at++] = load(offsetof(seccomp_data, nr));
  for (std::size_t i = 0; i < n; ++i) {
    code[at++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                          static_cast<std::uint32_t>(kAllowed[i]),
                          static_cast<std::uint8_t>(n - i), 0);
  }
  code[at++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  code[at++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog program = {static_cast<unsigned short>(at), code};
  // ENOSYS or EINVAL: a kernel without filters; the other steps still hold.
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ||
         errno == EINVAL || errno == ENOSYS;
}

#else

bool FilterSystemCalls() { return true; }

#endif

}  // namespace

bool Confine(pid_t zygote) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
  if (getppid() != zygote) return false;  // it died before the line above
  const rlimit none = {0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return false;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return FilterSystemCalls();
}

void LimitCpu(std::uint64_t used_ns, std::uint64_t limit_ns) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_CPU, &limit) != 0) return;
  limit.rlim_cur =
      limit_ns == 0 ? limit.rlim_max
                    : (used_ns + limit_ns + 999'999'999) / 1'000'000'000 + 1;
  if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_CPU, &limit);
}

}  // namespace penstock::worker
