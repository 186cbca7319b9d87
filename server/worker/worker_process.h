#ifndef PENSTOCK_SERVER_WORKER_WORKER_PROCESS_H_
#define PENSTOCK_SERVER_WORKER_WORKER_PROCESS_H_

#include <sys/types.h>

#include "common/shm/mapping.h"
#include "common/shm/unique_fd.h"

namespace penstock::worker {

// Exit codes of a worker; the pool reports them.
inline constexpr int kExitEndOfFile = 0;  // its socket was closed
inline constexpr int kExitOrphan = 10;    // the zygote was gone already
inline constexpr int kExitConfine = 11;   // confinement failed
inline constexpr int kExitProtocol = 12;  // the daemon sent nonsense

// The life of a worker, in the child of the fork: gives up every descriptor but
// its socket (moved to kControlFd) and the standard three, confines itself, then
// does jobs until end-of-file. Never returns.
[[noreturn]] void RunWorker(pid_t zygote, shm::UniqueFd socket,
                            const shm::Mapping& arena,
                            const shm::Mapping& input);

}  // namespace penstock::worker

#endif  // PENSTOCK_SERVER_WORKER_WORKER_PROCESS_H_
