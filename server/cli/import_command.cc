#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/status/status.h"
#include "server/cli/command.h"
#include "server/import/importer.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::json;

std::atomic<bool> g_cancel{false};
void OnSignal(int) { g_cancel.store(true, std::memory_order_relaxed); }

struct ImportFlags {
  import::ImportOptions options;
  bool dry_run = false;
};

const char* KindName(format::TrackKind kind) {
  return kind == format::TrackKind::kEvents  ? "events"
         : kind == format::TrackKind::kTicks ? "ticks"
                                             : "frames";
}

// What --dry-run shows of one source: what was understood, nothing decoded.
absl::Status ShowSource(const import::CaptureSource& s, bool json) {
  auto opened = demux::Demuxer::Open(s.video);
  if (!opened.ok()) return opened.status();
  Json line = {{"schema", "penstock.import.dry_run.v1"},
               {"source", s.video},
               {"mapping", s.mapping_file},
               {"title", s.mapping.title},
               {"container", (*opened)->container()},
               {"not_declared", s.undeclared}};
  for (const auto& stream : (*opened)->streams()) {
    const bool video = stream.kind == demux::StreamKind::kVideo;
    Json j = {{"kind", video                                          ? "video"
                       : stream.kind == demux::StreamKind::kAudio ? "audio"
                                                                  : "ignored"},
              {"codec", stream.codec.codec}};
    if (video) {
      j["width"] = stream.codec.width;
      j["height"] = stream.codec.height;
      j["pixel_format"] = stream.codec.pixel_format;
      j["rate"] = std::to_string(stream.average_rate.num) + "/" +
                  std::to_string(stream.average_rate.den);
    }
    line["streams"].push_back(j);
  }
  for (const auto& t : s.mapping.sidecars) {
    line["sidecars"].push_back({{"name", t.name},
                                {"kind", KindName(t.kind)},
                                {"file", t.file},
                                {"columns", t.columns.size()}});
  }
  line["texts"] = s.mapping.texts.size();
  if (json) {
    std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    return absl::OkStatus();
  }
  std::printf("%s\n  container %s   mapping %s   title %s\n", s.video.c_str(),
              line["container"].get<std::string>().c_str(),
              s.mapping_file.empty() ? "none" : s.mapping_file.c_str(),
              s.mapping.title.empty() ? "(none)" : s.mapping.title.c_str());
  for (const char* part : {"streams", "sidecars"}) {
    if (!line.contains(part)) continue;
    for (const Json& j : line[part]) {
      std::printf("  %-8s %s\n", part[1] == 't' ? "stream" : "sidecar",
                  j.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    }
  }
  for (const auto& name : s.undeclared) {
    std::printf("  not declared, not read: %s\n", name.c_str());
  }
  return absl::OkStatus();
}

int DryRun(const ImportFlags& flags, const CommandContext& context) {
  auto sources = import::ScanSources(flags.options.sources);
  if (!sources.ok()) return PrintError(sources.status());
  int exit_code = 0;
  for (const auto& s : *sources) {
    const absl::Status status =
        s.fault.ok() ? ShowSource(s, context.json) : s.fault;
    if (!status.ok()) exit_code = PrintError(status);
  }
  return exit_code;
}

void PrintReport(const import::ImportReport& report,
                 const import::ImportOptions& options,
                 const CommandContext& context) {
  std::uint64_t frames = 0;
  for (const auto& c : report.captures) {
    frames += c.frames;
    if (context.json) {
      std::printf("%s\n", Json({{"schema", "penstock.import.capture.v1"},
                                {"source", c.source},
                                {"capture", c.id},
                                {"title", c.title},
                                {"frames", c.frames},
                                {"lost", c.lost_frames},
                                {"damaged", c.damaged_frames},
                                {"notes", c.notes}})
                              .dump(-1, ' ', false, Json::error_handler_t::replace)
                              .c_str());
      continue;
    }
    if (c.lost_frames + c.damaged_frames > 0) {
      std::fprintf(stderr,
                   "damaged: %s: %llu frame%s lost, %llu frames damaged and "
                   "never delivered\n",
                   c.source.c_str(), (unsigned long long)c.lost_frames,
                   c.lost_frames == 1 ? "" : "s",
                   (unsigned long long)c.damaged_frames);
    }
    for (const auto& note : c.notes) {
      std::fprintf(stderr, "note: %s: %s\n", c.source.c_str(), note.c_str());
    }
  }
  for (const auto& [source, status] : report.refused) {
    std::fprintf(stderr, "left out: %s: %s\n", source.c_str(),
                 std::string(status.message()).c_str());
  }
  if (context.json) {
    std::printf("%s\n",
                Json({{"schema", "penstock.import.v1"},
                      {"dataset", options.out},
                      {"id", report.dataset_id},
                      {"captures", report.captures.size()},
                      {"frames", frames},
                      {"shards", report.shards},
                      {"bytes", report.bytes},
                      {"left_out", report.refused.size()},
                      {"loss", report.HasLoss()}})
                    .dump(-1, ' ', false, Json::error_handler_t::replace)
                    .c_str());
  } else {
    std::printf("%s\n  id        sha256:%s\n  captures  %zu\n  frames    %llu\n"
                "  shards    %zu, %.1f MiB\n",
                options.out.c_str(), report.dataset_id.c_str(),
                report.captures.size(), (unsigned long long)frames,
                report.shards, static_cast<double>(report.bytes) / (1 << 20));
  }
}

int RunImport(const ImportFlags& flags, const CommandContext& context) {
  if (flags.dry_run) return DryRun(flags, context);
  if (flags.options.out.empty()) {
    return PrintError(
        MakeError(absl::StatusCode::kInvalidArgument,
                  {.where = "import",
                   .what = "--out is missing",
                   .found = "no --out",
                   .expected = "the folder of the new dataset version",
                   .action = "give --out DIR, or --dry-run"}));
  }
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
  auto report = import::Import(
      flags.options, g_cancel, [](const import::ImportProgress& p) {
        std::fprintf(stderr, "[%zu/%zu] %s%s\n", p.done, p.total,
                     p.source.c_str(), p.status.ok() ? "" : ": refused");
      });
  if (!report.ok()) {
    const int code = PrintError(report.status());
    return report.status().code() == absl::StatusCode::kCancelled ? 130 : code;
  }
  PrintReport(*report, flags.options, context);
  return report->HasLoss() ? 4 : 0;
}

}  // namespace

void AddImportCommand(CLI::App& app, CommandContext& context) {
  auto* sub = app.add_subcommand("import", "captures -> dataset version");
  auto flags = std::make_shared<ImportFlags>();
  flags->options.jobs =
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  sub->add_option("sources", flags->options.sources,
                  "files and folders of mp4, mov, mkv, webm, ts, mpeg")
      ->required();
  sub->add_option("--out", flags->options.out, "folder of the new dataset");
  sub->add_option("--jobs", flags->options.jobs, "captures at the same time")
      ->check(CLI::Range(1, 256));
  sub->add_flag("--skip-bad", flags->options.skip_bad,
                "leave refused captures out (exit code 4)");
  sub->add_flag("--dry-run", flags->dry_run, "show what is understood");
  sub->add_flag("--json", context.json, "JSON lines on stdout");
  sub->callback(
      [flags, &context] { context.exit_code = RunImport(*flags, context); });
}

}  // namespace penstock::cli
