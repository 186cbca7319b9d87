#ifndef PENSTOCK_SERVER_PIPELINE_ZYGOTE_PROCESS_H_
#define PENSTOCK_SERVER_PIPELINE_ZYGOTE_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/shm/unique_fd.h"

namespace penstock::pipeline {

// The running penstock-decoder and the daemon's end of its control socket.
struct ZygoteProcess {
  pid_t pid = -1;
  shm::UniqueFd control;
};

// Starts the program with nothing but its control socket (as kControlFd) and
// standard error, in a process group of its own (a terminal's Ctrl-C is the
// daemon's affair), and waits for its hello.
//
// kNotFound: no program there; kUnavailable: it ended at once;
// kDeadlineExceeded: no hello in time; kFailedPrecondition: another version
absl::StatusOr<ZygoteProcess> StartZygote(const std::string& decoder_path,
                                          std::uint64_t timeout_ms);

// Sends SIGKILL when `kill_it`, then waits for the end of the process and reaps
// it.
void ReapZygote(pid_t pid, bool kill_it);

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_ZYGOTE_PROCESS_H_
