#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "loadtest/measure/bench.h"
#include "loadtest/measure/make_dataset.h"
#include "server/dataset/plan_source.h"

namespace penstock::loadtest {
namespace {

constexpr double kFirstSecondsMax = 5;
constexpr double kReopenMsMax = 100;
constexpr double kResidentMiBMax = 64;

// A field of /proc/self/status, in MiB.
double StatusMiB(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) {
      return std::stod(line.substr(field.size() + 1)) / 1024;
    }
  }
  return 0;
}

struct Opening {
  double seconds = 0, resident = 0, peak = 0;
};

// In a program of its own: nothing is left from the time before.
absl::StatusOr<Opening> Open(const Bench& bench, const std::string& feed,
                             const std::string& cache) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::string text,
      Shell(absl::StrFormat("%s/penstock-loadtest --open-feed %s --cache %s",
                            bench.bin, feed, cache)));
  Opening out;
  if (std::sscanf(text.c_str(), "%lf s, %lf MiB, %lf MiB", &out.seconds,
                  &out.resident, &out.peak) != 3) {
    return absl::InternalError("--open-feed printed " + text);
  }
  return out;
}

}  // namespace

absl::Status OpenFeedAndPrint(const std::string& feed, const std::string& cache) {
  const double before = StatusMiB("VmRSS");
  const double begin = NowSeconds();
  PENSTOCK_ASSIGN_OR_RETURN(const dataset::OpenedFeed opened,
                            dataset::OpenFeedFile(feed, {.dir = cache}));
  const double seconds = NowSeconds() - begin;
  std::printf("%.6f s, %.1f MiB, %.1f MiB (%.1f before), %s\n", seconds,
              StatusMiB("VmRSS"), StatusMiB("VmHWM"), before,
              opened.cached ? "mapped" : "selected");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Ratio>> MeasureOpen(const Bench& bench) {
  DatasetShape shape;
  if (bench.full_scale) {
    shape.captures = 1'000'000;
    shape.shards = 100'000;
  }
  const std::string dir = bench.scratch + "/open";
  const std::string feed = dir + "/feed.yaml", cache = dir + "/cache";
  PENSTOCK_RETURN_IF_ERROR(MakeDataset(dir + "/data", shape));
  std::ofstream(feed) << FeedOverTitles("data", shape, 10'000);
  const std::string what = absl::StrFormat(
      "%d captures, %d shards, %d sources", shape.captures, shape.shards, shape.titles);
  std::vector<Ratio> out;
  const auto goal = [&](const std::string& name, const char* unit, double value,
                        const auto& ours) -> absl::Status {
    PENSTOCK_ASSIGN_OR_RETURN(
        Ratio r, RunPairs(name + " / goal", unit, bench.pairs, 1, false, ours,
                          [&]() -> absl::StatusOr<double> { return value; }));
    out.push_back(std::move(r));
    return absl::OkStatus();
  };
  PENSTOCK_RETURN_IF_ERROR(goal("first open of " + what, "s", kFirstSecondsMax,
                                [&]() -> absl::StatusOr<double> {
                                  std::filesystem::remove_all(cache);
                                  PENSTOCK_ASSIGN_OR_RETURN(const Opening o,
                                                            Open(bench, feed, cache));
                                  return o.seconds;
                                }));
  PENSTOCK_RETURN_IF_ERROR(goal("reopen", "ms", kReopenMsMax,
                                [&]() -> absl::StatusOr<double> {
                                  PENSTOCK_ASSIGN_OR_RETURN(const Opening o,
                                                            Open(bench, feed, cache));
                                  return o.seconds * 1e3;
                                }));
  PENSTOCK_RETURN_IF_ERROR(goal("reopen, resident at most, whole program", "MiB",
                                kResidentMiBMax, [&]() -> absl::StatusOr<double> {
                                  PENSTOCK_ASSIGN_OR_RETURN(const Opening o,
                                                            Open(bench, feed, cache));
                                  return o.peak;
                                }));
  return out;
}

}  // namespace penstock::loadtest
