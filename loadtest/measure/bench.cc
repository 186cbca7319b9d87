#include "loadtest/measure/bench.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace penstock::loadtest {

double NowSeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::StatusOr<std::string> Shell(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return absl::InternalError(command);
  std::string out;
  char buffer[4096];
  while (std::size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) {
    out.append(buffer, n);
  }
  if (::pclose(pipe) != 0) return absl::InternalError("failed: " + command);
  return out;
}

absl::StatusOr<std::string> WriteFeed(const Bench& bench,
                                      const std::string& name,
                                      const FeedShape& f) {
  const std::string path = bench.scratch + "/" + name + ".yaml";
  std::ofstream out(path);
  out << absl::StrFormat(
      "name: %s\nseed: 1\nglobal_batch: %d\nepochs: %d\nsources:\n"
      "  - name: all\n    dataset: %s\n    filter: %s\n"
      "    view: {frames: %d, hop: %d}\noutputs:\n"
      "  - name: video\n    video: {width: %d, height: %d}\n",
      name, f.global_batch, f.hop > 0 ? 1 : 0, bench.dataset,
      f.hop > 0 ? "title = 'solarwolf'" : "''", f.frames,
      f.hop > 0 ? f.hop : f.frames, f.width, f.height);
  out.close();
  if (!out) return absl::InternalError(path + ": not written");
  return path;
}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const Bench& bench,
                                                      int prefetch_steps,
                                                      std::uint64_t arena) {
  static std::atomic<int> next{0};
  const std::string home =
      absl::StrFormat("%s/d%d", bench.scratch, next.fetch_add(1));
  std::filesystem::create_directories(home);
  const std::string config = home + "/penstockd.yaml";
  std::ofstream(config) << absl::StrFormat(
      "socket_dir: %s/run\nstate_dir: %s/state\narena_bytes: %d\n"
      "prefetch_steps: %d\nlog_level: error\n",
      home, home, arena, prefetch_steps);
  int out[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it never outlives the measure
    ::dup2(out[1], 1);
    const std::string program = bench.bin + "/penstockd";
    ::execl(program.c_str(), program.c_str(), "--config", config.c_str(),
            "--insecure-loopback", nullptr);
    ::_exit(127);
  }
  ::close(out[1]);
  // The daemon prints its port when it serves.
  std::string text;
  char c;
  pollfd p{out[0], POLLIN, 0};
  while (text.find('\n') == std::string::npos && ::poll(&p, 1, 10'000) > 0 &&
         ::read(out[0], &c, 1) == 1) {
    text += c;
  }
  ::close(out[0]);
  int port = 0;
  if (std::sscanf(text.c_str(), "{\"tcp_port\":%d}", &port) != 1) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return absl::UnavailableError("penstockd did not start");
  }
  return std::unique_ptr<Daemon>(new Daemon(home + "/run", pid, port));
}

Daemon::~Daemon() {
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace penstock::loadtest
