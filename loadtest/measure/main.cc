// penstock-loadtest: ratios of Penstock against the least that the same machine
// can do, each pair measured in one run.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "loadtest/measure/bench.h"

namespace penstock::loadtest {
namespace {

struct Measure {
  const char* name;
  absl::StatusOr<std::vector<Ratio>> (*run)(const Bench&);
};
constexpr Measure kMeasures[] = {{"read", MeasureRead},
                                 {"decode", MeasureDecode},
                                 {"delivery", MeasureDelivery},
                                 {"remote", MeasureRemote},
                                 {"attach", MeasureAttach},
                                 {"plan", MeasurePlan},
                                 {"open", MeasureOpen}};

bool Wanted(const std::vector<std::string>& only, const std::string& name) {
  return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
}

// All but the last two read recordings.
bool NeedsCaptures(const std::vector<std::string>& only) {
  return std::any_of(std::begin(kMeasures), std::end(kMeasures) - 2,
                     [&](const Measure& m) { return Wanted(only, m.name); });
}

void Print(const Ratio& r) {
  std::printf("| %s | %.1f | %.1f | %s | %.2f | %.0f %% | %s %.2f | %s | %s |\n",
              r.name.c_str(), r.ours, r.theirs, r.unit.c_str(), r.ratio,
              r.spread * 100, r.at_least ? ">=" : "<=", r.bound,
              Verdict(r).c_str(), r.note.c_str());
  std::fflush(stdout);
}

absl::Status Run(Bench bench, const std::vector<std::string>& only) {
  if (NeedsCaptures(only)) {
    bench.dataset = bench.scratch + "/dataset";
    PENSTOCK_RETURN_IF_ERROR(
        Shell(absl::StrFormat("%s/penstock import %s --out %s 2>/dev/null",
                              bench.bin, bench.captures, bench.dataset))
            .status());
  }
  std::printf("| what | ours | theirs | unit | ratio | spread | bound | verdict "
              "| note |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const Measure& m : kMeasures) {
    if (!Wanted(only, m.name)) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const auto ratios, m.run(bench));
    for (const Ratio& r : ratios) Print(r);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace penstock::loadtest

int main(int argc, char** argv) {
  CLI::App app("penstock-loadtest: ratios, each pair measured in one run");
  penstock::loadtest::Bench bench;
  std::vector<std::string> only;
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  bench.bin = self.parent_path().string();
  bench.captures = "tests/data/captures";
  std::string dir = "/var/tmp";
  app.add_option("--captures", bench.captures, "folder of recordings");
  app.add_option("--pairs", bench.pairs, "pairs of each measure")
      ->check(CLI::Range(1, 101));
  app.add_option("--scratch", dir, "where a scratch folder is made (a disk)");
  std::string scale = "quick";
  app.add_option("--scale", scale, "of generated datasets: quick (10^5 captures) or full (10^6)")
      ->check(CLI::IsMember({"quick", "full"}));
  std::string feed, cache;
  app.add_option("--open-feed", feed, "only open this feed and print how it went");
  app.add_option("--cache", cache, "with --open-feed: folder of the selection cache");
  app.add_option("measures", only,
                 "read, decode, delivery, remote, attach, plan, open");
  CLI11_PARSE(app, argc, argv);
  if (!feed.empty()) {
    const absl::Status opened = penstock::loadtest::OpenFeedAndPrint(feed, cache);
    if (opened.ok()) return 0;
    std::fprintf(stderr, "penstock-loadtest: %s\n",
                 std::string(opened.message()).c_str());
    return penstock::ExitCodeOf(opened);
  }
  bench.full_scale = scale == "full";
  bench.captures = std::filesystem::absolute(bench.captures).string();
  std::string scratch = dir + "/penstock-loadtest.XXXXXX";
  if (::mkdtemp(scratch.data()) == nullptr) {
    std::perror(scratch.c_str());
    return 3;
  }
  bench.scratch = scratch;
  const absl::Status status = penstock::loadtest::Run(bench, only);
  std::error_code error;
  std::filesystem::remove_all(scratch, error);
  if (status.ok()) return 0;
  std::fprintf(stderr, "penstock-loadtest: %s\n",
               std::string(status.message()).c_str());
  return penstock::ExitCodeOf(status);
}
