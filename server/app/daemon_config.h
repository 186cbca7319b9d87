#ifndef PENSTOCK_SERVER_APP_DAEMON_CONFIG_H_
#define PENSTOCK_SERVER_APP_DAEMON_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/io/read_engine.h"
#include "server/pipeline/job_manager.h"

namespace penstock::app {

// The daemon's configuration with every default filled in.
struct DaemonConfig {
  std::string socket_dir, state_dir, listen, metrics, log_level;
  io::Backend io = io::Backend::kAuto;
  pipeline::JobManagerOptions jobs;
};

// Reads the file (empty path: defaults only) and fills in what it leaves out
// from the user, the memory and the cores of this machine.
//
// kInvalidArgument: unknown field, wrong value; with file, line, column
// kNotFound: no such file
absl::StatusOr<DaemonConfig> LoadDaemonConfig(const std::string& path);

// OK when `address` is HOST:PORT on loopback.
//
// kInvalidArgument: another address: plain TCP never leaves the machine
absl::Status CheckLoopback(const std::string& address);

}  // namespace penstock::app

#endif  // PENSTOCK_SERVER_APP_DAEMON_CONFIG_H_
