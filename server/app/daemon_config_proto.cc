#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "absl/strings/str_format.h"
#include "common/config/yaml_message.h"
#include "common/status/status.h"
#include "penstock/v1/daemon.pb.h"
#include "server/app/daemon_config.h"

namespace penstock::app {
namespace {

constexpr std::uint64_t kInputBytesMin = 16ull << 20;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string DefaultDir(const char* root_dir, const char* variable,
                       const std::string& home_fallback) {
  if (::geteuid() == 0) return root_dir;
  if (std::string base = Environment(variable); !base.empty()) {
    return base + "/penstock";
  }
  return Environment("HOME") + home_fallback;
}

std::string ProgramDir() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (n <= 0) return ".";
  const std::string program(path, static_cast<std::size_t>(n));
  return program.substr(0, program.rfind('/'));
}

std::uint64_t MemoryBytes() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

absl::Status CheckLoopback(const std::string& address) {
  const auto colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  const std::string port =
      colon == std::string::npos ? "" : address.substr(colon + 1);
  const bool number = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string::npos;
  if (number && std::stoi(port) <= 65535 &&
      (host.starts_with("127.") || host == "localhost" || host == "[::1]")) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = "listen",
                    .what = "not an address of this machine; plain TCP stays here",
                    .found = "\"" + address + "\"",
                    .expected = "127.0.0.1:PORT or [::1]:PORT",
                    .action = "use the socket folder for ranks of this node"});
}

absl::StatusOr<DaemonConfig> LoadDaemonConfig(const std::string& path) {
  v1::DaemonConfig m;
  config::Positions positions(path);
  if (!path.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string text,
                              config::ReadYamlFile(path));
    PENSTOCK_ASSIGN_OR_RETURN(positions, config::ParseYaml(text, path, &m));
  }
  DaemonConfig c;
  c.socket_dir = !m.socket_dir().empty()
                     ? m.socket_dir()
                     : DefaultDir("/run/penstock", "XDG_RUNTIME_DIR",
                                  "/.penstock/run");
  c.state_dir = !m.state_dir().empty()
                    ? m.state_dir()
                    : DefaultDir("/var/lib/penstock", "XDG_STATE_HOME",
                                 "/.local/state/penstock");
  c.listen = m.listen();
  c.metrics = m.metrics();
  c.log_level = m.log_level().empty() ? "info" : m.log_level();
  if (c.log_level != "info" && c.log_level != "debug" &&
      c.log_level != "warn" && c.log_level != "error") {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = positions.Where("log_level"),
                      .what = "unknown level",
                      .found = c.log_level,
                      .expected = "debug, info, warn or error",
                      .action = "leave it out for info"});
  }
  if (m.io() == "io_uring") {
    c.io = io::Backend::kUring;
  } else if (m.io() == "pread") {
    c.io = io::Backend::kPread;
  } else if (!m.io().empty() && m.io() != "auto") {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = positions.Where("io"),
                      .what = "unknown backend",
                      .found = m.io(),
                      .expected = "auto, io_uring or pread",
                      .action = "leave it out for auto"});
  }
  auto& j = c.jobs;
  j.workers.decoder_path =
      m.decoder().empty() ? ProgramDir() + "/penstock-decoder" : m.decoder();
  j.workers.workers = m.workers() != 0
                          ? m.workers()
                          : std::max(1u, std::thread::hardware_concurrency());
  if (j.workers.workers > 1024) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = positions.Where("workers"),
                      .what = "too many",
                      .found = absl::StrFormat("%d", j.workers.workers),
                      .expected = "at most 1024",
                      .action = "leave it out for one a core"});
  }
  j.workers.queue_max = std::max(64u, 4 * j.workers.workers);
  j.arena_bytes = m.arena_bytes() != 0 ? m.arena_bytes() : MemoryBytes() / 4;
  j.input_bytes = m.input_bytes() != 0 ? m.input_bytes() : 256ull << 20;
  if (j.input_bytes < kInputBytesMin) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = positions.Where("input_bytes"),
         .what = "too small",
         .found = absl::StrFormat("%d", j.input_bytes),
         .expected = absl::StrFormat("at least %d: a block and its preroll",
                                     kInputBytesMin),
         .action = "raise it, or leave it out for 256 MiB"});
  }
  j.prefetch_steps = m.prefetch_steps() != 0 ? m.prefetch_steps() : 4;
  if (j.prefetch_steps > 1024) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = positions.Where("prefetch_steps"),
                      .what = "too many",
                      .found = absl::StrFormat("%d", j.prefetch_steps),
                      .expected = "at most 1024",
                      .action = "leave it out for 4"});
  }
  if (!c.listen.empty()) {
    if (absl::Status s = CheckLoopback(c.listen); !s.ok()) {
      return Annotate(s, positions.Where("listen"));
    }
  }
  if (!c.metrics.empty()) {
    if (absl::Status s = CheckLoopback(c.metrics); !s.ok()) {
      return Annotate(s, positions.Where("metrics"));
    }
  }
  return c;
}

}  // namespace penstock::app
