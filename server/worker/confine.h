#ifndef PENSTOCK_SERVER_WORKER_CONFINE_H_
#define PENSTOCK_SERVER_WORKER_CONFINE_H_

#include <sys/types.h>

#include <cstdint>

namespace penstock::worker {

// What a worker gives up before it reads a byte: core dumps, new privileges,
// life without its zygote, and (x86-64, no sanitizer) every system call that
// decoding does not need; the others fail with EPERM, io_uring among them. False
// when the kernel refuses a step that must not be skipped.
bool Confine(pid_t zygote);

// SIGXCPU once this process has used `limit_ns` more CPU time (rounded up to
// whole seconds, plus one): the stop for a decoder that does not come back from
// one packet. 0 takes the limit away.
void LimitCpu(std::uint64_t used_ns, std::uint64_t limit_ns);

}  // namespace penstock::worker

#endif  // PENSTOCK_SERVER_WORKER_CONFINE_H_
