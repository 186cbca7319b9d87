#ifndef PENSTOCK_SERVER_WORKER_ZYGOTE_H_
#define PENSTOCK_SERVER_WORKER_ZYGOTE_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "common/shm/mapping.h"
#include "common/shm/unique_fd.h"
#include "common/shm/worker_protocol.h"

namespace penstock::worker {

// The small single-threaded process that maps arenas while they can still be
// mapped for writing, and forks workers that inherit the mapping.
//
// Threading: one thread; it never decodes and reads nothing but its socket.
// Bounds: one mapping pair an arena, one child a ForkWorker not yet reaped.
// Stopping: end-of-file on the control socket; its children get SIGKILL from the
//   kernel then (PR_SET_PDEATHSIG).
class Zygote {
 public:
  // Serves the control socket until end-of-file; returns the exit code.
  int Run();

 private:
  struct Arena {
    shm::Mapping arena, input;
  };
  absl::Status Handle(const shm::ControlMessage& message,
                      std::vector<shm::UniqueFd> fds);
  absl::Status MapArena(const shm::ControlMessage& message,
                        const std::vector<shm::UniqueFd>& fds);
  absl::Status ForkWorker(const shm::ControlMessage& message,
                          std::vector<shm::UniqueFd> fds, pid_t& pid);
  void KillWorker(std::uint64_t worker);
  void Reap();

  std::map<std::uint64_t, Arena> arenas_;
  std::map<pid_t, std::uint64_t> workers_;  // not yet reaped
};

}  // namespace penstock::worker

#endif  // PENSTOCK_SERVER_WORKER_ZYGOTE_H_
