#ifndef PENSTOCK_TESTS_SUPPORT_SITE_H_
#define PENSTOCK_TESTS_SUPPORT_SITE_H_

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

// A daemon, its ranks and a dataset, as real processes.
namespace penstock::test {

namespace fs = std::filesystem;
using Json = nlohmann::json;

inline const std::string kBin = PENSTOCK_BIN_DIR;
inline const std::string kCaptures =
    std::string(PENSTOCK_SOURCE_DIR) + "/tests/data/captures";

// One dataset for all tests of this program.
inline const std::string& Dataset() {
  static TempDir dir;
  static const std::string path = [] {
    const std::string out = dir.path() + "/dataset";
    Child import({kBin + "/penstock", "import", kCaptures, "--out", out});
    const int code = import.Wait();
    INFO(import.output());
    REQUIRE(code == 0);
    return out;
  }();
  return path;
}

// A folder with a feed, a daemon's configuration, and what runs there.
class Site {
 public:
  Site() {
    WriteFeed("feed.yaml", "main", 8);
    std::ofstream(home_ / "penstockd.yaml")
        << "socket_dir: " << run() << "\nstate_dir: " << home_ / "state"
        << "\narena_bytes: 268435456\nlog_level: info\n";
  }

  std::string home() const { return home_.string(); }

  void AddConfig(const std::string& line) {
    std::ofstream(home_ / "penstockd.yaml", std::ios::app) << line << "\n";
  }

  void WriteFeed(const std::string& file, const std::string& name, int batch,
                 const std::string& more = "", int width = 64,
                 int height = 48) {
    std::ofstream(home_ / file)
        << "name: " << name << "\nseed: 3\nglobal_batch: " << batch
        << "\nsources:\n  - name: doom\n    dataset: " << Dataset()
        << "\n    filter: title LIKE 'freedoom%'\n    weight: 0.75\n"
           "    view: {frames: 4, stride: 2, hop: 8}\n"
           "  - name: wolf\n    dataset: "
        << Dataset()
        << "\n    filter: title = 'solarwolf'\n    weight: 0.25\n"
           "    view: {frames: 4, stride: 2, hop: 8}\n"
           "outputs:\n  - name: video\n    video: {width: "
        << width << ", height: " << height
        << "}\n"
           "  - name: keys\n    keys: {track: input, keys: [KeyW, Space]}\n"
           "  - name: mouse\n    mouse: {track: input}\n"
        << more;
  }

  std::string run() const { return home_ / "run"; }
  std::string path(const std::string& file) const { return home_ / file; }

  void StartDaemon() {
    daemon_ = std::make_unique<Child>(std::vector<std::string>{
        kBin + "/penstockd", "--config", path("penstockd.yaml"),
        "--insecure-loopback"});
    const bool serves = daemon_->WaitFor("tcp_port");
    INFO(daemon_->output());
    REQUIRE(serves);
  }
  Child& daemon() { return *daemon_; }
  void KillDaemon() {
    daemon_->Kill(SIGKILL);
    daemon_->Wait();
  }
  std::string Tcp() {
    daemon_->WaitFor("\n");
    const auto at = daemon_->output().find("{\"tcp_port\":");
    return "tcp:127.0.0.1:" +
           std::to_string(std::atoi(daemon_->output().c_str() + at + 12));
  }

  std::unique_ptr<Child> Feed(std::vector<std::string> more,
                              const std::string& feed = "feed.yaml") {
    std::vector<std::string> command = {kBin + "/penstock", "feed", "--feed",
                                        path(feed), "--digest", "--json"};
    command.insert(command.end(), more.begin(), more.end());
    return std::make_unique<Child>(command);
  }

  // `penstock feed --connect …` for one rank.
  std::unique_ptr<Child> Rank(int rank, int world, int steps,
                              const std::string& incarnation,
                              std::vector<std::string> more = {}) {
    std::vector<std::string> args = {
        "--connect",     run(),           "--rank",  std::to_string(rank),
        "--world",       std::to_string(world), "--steps",
        std::to_string(steps), "--incarnation", incarnation};
    args.insert(args.end(), more.begin(), more.end());
    return Feed(args);
  }

 private:
  TempDir dir_;
  fs::path home_ = dir_.path();
  std::unique_ptr<Child> daemon_;
};

// step -> line, of the steps in an output.
inline std::map<std::uint64_t, Json> Steps(const std::string& output) {
  std::map<std::uint64_t, Json> out;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const Json j = Json::parse(line, nullptr, false);
    if (j.is_object() && j.contains("digest")) out[j["step"]] = j;
  }
  return out;
}

inline std::string StateDict(const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const Json j = Json::parse(line, nullptr, false);
    if (j.is_object() && j.contains("state_dict")) return j["state_dict"];
  }
  return "";
}

inline std::map<std::uint64_t, std::string> Digests(const std::string& output) {
  std::map<std::uint64_t, std::string> out;
  for (const auto& [step, line] : Steps(output)) out[step] = line["digest"];
  return out;
}

// The reference: the same steps without a daemon.
inline std::map<std::uint64_t, std::string> Reference(Site& site, int rank, int world,
                                               int steps, int from = 0) {
  auto local = site.Feed({"--local", "--rank", std::to_string(rank), "--world",
                          std::to_string(world), "--steps",
                          std::to_string(steps), "--resume",
                          from == 0 ? "new" : "step:" + std::to_string(from)});
  const int code = local->Wait();
  INFO(local->output());
  REQUIRE(code == 0);
  return Digests(local->output());
}

// kill -9 of one process among the daemon's zygote (level 1) or workers (2).
inline void KillBelow(pid_t daemon, int level, unsigned pick = 0) {
  const std::string children = "pgrep -P " + std::to_string(daemon);
  const std::string list =
      level == 1 ? children
                 : "for z in $(" + children + "); do pgrep -P $z; done";
  Child kill({"/bin/sh", "-c",
              "set -- $(" + list + "); [ $# -eq 0 ] && exit; shift $((" +
                  std::to_string(pick) + " % $#)); kill -9 $1"});
  kill.Wait();
}

inline std::string LineOf(int step) {
  return "\"step\":" + std::to_string(step) + ",";
}

}  // namespace penstock::test

#endif  // PENSTOCK_TESTS_SUPPORT_SITE_H_
