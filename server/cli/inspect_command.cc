#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_format.h"
#include "common/format/timing.h"
#include "common/hash/hash.h"
#include "common/status/status.h"
#include "server/cli/command.h"
#include "server/import/capture_reader.h"
#include "server/import/contact_sheet.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::json;
using import::CaptureReader;
using import::ReadTrack;

struct InspectFlags {
  std::string target, png, raw, track;
  std::uint32_t cells = 32;
};

// DATASET[:CAPTURE[:WINDOW]] taken apart; the dataset is the longest prefix
// that exists.
struct Target {
  std::string path, capture, window;
};

Target SplitTarget(const std::string& text) {
  std::error_code error;
  for (std::size_t at = text.size();; at = text.rfind(':', at - 1)) {
    if (at == std::string::npos) return {text, "", ""};
    const std::string path = text.substr(0, at);
    if (at > 0 && std::filesystem::exists(path, error)) {
      Target t{path, "", ""};
      if (at < text.size()) {
        const std::string rest = text.substr(at + 1);
        const auto colon = rest.find(':');
        t.capture = rest.substr(0, colon);
        if (colon != std::string::npos) t.window = rest.substr(colon + 1);
      }
      return t;
    }
    if (at == 0) return {text, "", ""};
  }
}

bool ParseNumber(std::string_view text, std::uint64_t& out) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// "START+COUNT" or "BEGIN-END" (END not in it), in frames; empty: all.
absl::Status ParseWindow(const std::string& text, std::uint64_t frames,
                         std::uint64_t& begin, std::uint64_t& end) {
  begin = 0;
  end = frames;
  if (text.empty()) return absl::OkStatus();
  const auto at = text.find_first_of("+-");
  std::uint64_t a = 0, b = 0;
  const bool parsed = at != std::string::npos &&
                      ParseNumber(text.substr(0, at), a) &&
                      ParseNumber(text.substr(at + 1), b);
  if (parsed && text[at] == '+') b += a;
  if (!parsed || a >= b || b > frames) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = "window \"" + text + "\"",
                      .what = "no such frames",
                      .found = parsed ? absl::StrFormat("frames %d to %d", a, b)
                                      : "no two numbers",
                      .expected = absl::StrFormat(
                          "START+COUNT or BEGIN-END inside 0 to %d", frames),
                      .action = "choose frames that the track has"});
  }
  begin = a;
  end = b;
  return absl::OkStatus();
}

struct Named {
  std::uint32_t capture = 0;
  Digest256 id{};
  std::string title, source;
};

absl::StatusOr<std::uint32_t> FindCapture(const std::vector<Named>& all,
                                          const std::string& text) {
  std::uint64_t number = 0;
  if (text.size() < 6 && ParseNumber(text, number) && number < all.size()) {
    return static_cast<std::uint32_t>(number);
  }
  std::vector<std::uint32_t> found;
  for (const auto& c : all) {
    const bool by_id = text.size() >= 4 && hash::Hex(c.id).starts_with(text);
    const bool by_source = std::filesystem::path(c.source).stem() == text ||
                           std::filesystem::path(c.source).filename() == text;
    if (by_id || by_source) found.push_back(c.capture);
  }
  if (found.size() == 1) return found[0];
  return MakeError(
      absl::StatusCode::kNotFound,
      {.where = "capture \"" + text + "\"",
       .what = found.empty() ? "no such capture" : "more than one capture",
       .found = absl::StrFormat("%d of that name", found.size()),
       .expected = absl::StrFormat(
           "a number below %d, the first 4 or more digits of an id, or the name "
           "of a source file",
           all.size()),
       .action = "list them with `penstock inspect DATASET`"});
}

std::int64_t SourcePts(const ReadTrack& t, std::int64_t capture_ns) {
  return capture_ns + t.row.origin_ns;
}

// Time of the last frame: its pts, not its end.
absl::StatusOr<std::int64_t> LastFrameNs(CaptureReader& reader,
                                         const ReadTrack& t) {
  if (t.row.rows == 0) return 0;
  PENSTOCK_ASSIGN_OR_RETURN(
      const auto times, reader.FrameTimes(t, t.row.rows - 1, t.row.rows));
  return times[0];
}

const char* KindName(format::TrackKind kind) {
  switch (kind) {
    case format::TrackKind::kVideo: return "video";
    case format::TrackKind::kAudio: return "audio";
    case format::TrackKind::kEvents: return "events";
    case format::TrackKind::kTicks: return "ticks";
    case format::TrackKind::kFrames: return "frames";
    case format::TrackKind::kText: return "text";
    case format::TrackKind::kSpans: return "spans";
  }
  return "unknown";
}

absl::StatusOr<Json> DescribeTrack(CaptureReader& reader, const Named& capture,
                                   const ReadTrack& t) {
  const bool video = t.row.kind == format::TrackKind::kVideo;
  std::int64_t last_ns = t.row.end_ns;
  if (video) {
    PENSTOCK_ASSIGN_OR_RETURN(last_ns, LastFrameNs(reader, t));
  }
  std::uint64_t entries = 0;
  for (const auto& g : t.gops) entries += g.frame_count > 0;
  Json details = Json::parse(t.details, nullptr, false);
  if (!details.is_object()) details = Json::object();
  Json j = {{"schema", "penstock.inspect.v1"},
            {"source", capture.source},
            {"capture", hash::Hex(capture.id)},
            {"title", capture.title},
            {"track", t.name},
            {"kind", KindName(t.row.kind)},
            {"codec", t.codec},
            {"rows", t.row.rows},
            {"frames", video ? t.row.rows : 0},
            {"keyframes", video ? details.value("keyframes", entries) : 0},
            {"width", t.row.width},
            {"height", t.row.height},
            {"first_pts_ns", SourcePts(t, t.row.first_ns)},
            {"last_pts_ns", SourcePts(t, last_ns)},
            {"first_ns", t.row.first_ns},
            {"end_ns", t.row.end_ns},
            {"damaged", details.value("damaged_frames", 0) +
                            details.value("lost_frames", 0)},
            {"events", t.row.kind == format::TrackKind::kEvents ? t.row.rows : 0}};
  if (video) {
    j["rate"] = absl::StrFormat("%d/%d", t.row.rate_num, t.row.rate_den);
    j["rotation"] = t.row.rotation % 1000;
    j["mirrored"] = t.row.rotation >= 1000;
    j["full_range"] = (t.row.flags & format::kTrackFullRange) != 0;
    j["matrix"] = t.row.colour_matrix;
    j["transfer"] = t.row.colour_transfer;
    j["primaries"] = t.row.colour_primaries;
    j["bit_depth"] = t.row.bit_depth;
  }
  j["details"] = details;
  const Json schema = Json::parse(t.schema, nullptr, false);
  if (schema.is_object() && !schema.empty()) j["columns"] = schema;
  return j;
}

// A text without an end lasts as long as its capture.
std::string EndText(std::int64_t ns) {
  return ns == INT64_MAX ? "the end" : absl::StrFormat("%.3f s", ns / 1e9);
}

void PrintTrack(const Json& j) {
  std::string text = absl::StrFormat(
      "  %-10s %-7s %-16s %8d rows  %.3f s to %s",
      j["track"].get<std::string>(), j["kind"].get<std::string>(),
      j["codec"].get<std::string>(), j["rows"].get<std::uint64_t>(),
      j["first_ns"].get<std::int64_t>() / 1e9,
      EndText(j["end_ns"].get<std::int64_t>()));
  if (j["kind"] == "video") {
    text += absl::StrFormat(
        "  %dx%d %s  %d keyframes", j["width"].get<int>(),
        j["height"].get<int>(),
        j["details"].value("pixel_format", std::string("?")),
        j["keyframes"].get<int>());
    if (j["damaged"].get<int>() > 0) {
      text += absl::StrFormat("  DAMAGED %d", j["damaged"].get<int>());
    }
  }
  std::printf("%s\n", text.c_str());
}

absl::StatusOr<const ReadTrack*> ChooseVideo(const CaptureReader& reader,
                                             const std::string& name) {
  for (const auto& t : reader.tracks()) {
    if (t.row.kind == format::TrackKind::kVideo &&
        (name.empty() || t.name == name)) {
      return &t;
    }
  }
  return MakeError(
      absl::StatusCode::kNotFound,
      {.where = "inspect",
       .what = "no such video track",
       .found = name.empty() ? "a capture without video" : "\"" + name + "\"",
       .expected = "a video track of the capture",
       .action = "choose another track; `penstock inspect DATASET:CAPTURE` "
                 "lists them"});
}

absl::Status WriteRaw(CaptureReader& reader, const ReadTrack& t,
                      std::uint64_t begin, std::uint64_t end,
                      const std::string& path) {
  std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "wb");
  if (file == nullptr) return ErrnoError(errno, path, "check the path of --raw");
  bool ok = true;
  absl::Status status = reader.ForEachFrame(
      t, begin, end, [&](const format::PacketRow&, const decode::Picture& p) {
        for (int i = 0; i < p.plane_count; ++i) {
          for (std::uint32_t y = 0; y < p.rows[i]; ++y) {
            ok = ok && std::fwrite(p.planes[i] + y * p.strides[i],
                                   p.row_bytes[i], 1, file) == 1;
          }
        }
      });
  ok = (file == stdout ? std::fflush(file) : std::fclose(file)) == 0 && ok;
  if (status.ok() && !ok) {
    return MakeError(absl::StatusCode::kResourceExhausted,
                     {.where = path,
                      .what = "could not be written whole",
                      .found = "a write that failed",
                      .expected = "room for the frames",
                      .action = "free space, or write to another disk"});
  }
  return status;
}

absl::Status WriteSheet(CaptureReader& reader, const ReadTrack& t,
                        std::uint64_t begin, std::uint64_t end,
                        std::uint32_t cells, const std::string& path) {
  const auto count =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(cells, end - begin));
  PENSTOCK_ASSIGN_OR_RETURN(const auto times, reader.FrameTimes(t, begin, end));
  PENSTOCK_ASSIGN_OR_RETURN(const auto inputs, reader.Inputs(times));
  import::ContactSheet sheet(8, count, t.row.width, t.row.height);
  absl::Status add;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t frame = begin + (end - begin) * i / count;
    import::SheetCell cell;
    cell.frame = frame;
    cell.t_ns = times[frame - begin];
    cell.inputs = inputs[frame - begin].held;
    cell.dx = inputs[frame - begin].dx;
    cell.dy = inputs[frame - begin].dy;
    PENSTOCK_RETURN_IF_ERROR(reader.ForEachFrame(
        t, frame, frame + 1,
        [&](const format::PacketRow& row, const decode::Picture& p) {
          cell.entry = (row.flags & format::kPacketEntry) != 0;
          cell.damaged = (row.flags & format::kFrameDamaged) != 0;
          add.Update(sheet.Add(p, cell));
        }));
  }
  PENSTOCK_RETURN_IF_ERROR(add);
  return sheet.Write(path);
}

absl::Status PrintWindow(CaptureReader& reader, const ReadTrack& t,
                         std::uint64_t begin, std::uint64_t end, bool json) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto times, reader.FrameTimes(t, begin, end));
  PENSTOCK_ASSIGN_OR_RETURN(const auto inputs, reader.Inputs(times));
  for (std::uint64_t f = begin; f < end; ++f) {
    const auto& in = inputs[f - begin];
    if (json) {
      std::printf("%s\n", Json({{"schema", "penstock.inspect.frame.v1"},
                                {"frame", f},
                                {"t_ns", times[f - begin]},
                                {"inputs", in.held},
                                {"dx", in.dx},
                                {"dy", in.dy},
                                {"events", in.events}})
                              .dump(-1, ' ', false, Json::error_handler_t::replace)
                              .c_str());
    } else {
      std::printf("  frame %6llu  %10.4f s  %3u events  mouse %+5lld %+5lld  %s\n",
                  (unsigned long long)f, times[f - begin] / 1e9, in.events,
                  (long long)in.dx, (long long)in.dy, in.held.c_str());
    }
  }
  return absl::OkStatus();
}

absl::Status InspectCapture(CaptureReader& reader, const Named& capture,
                            const std::string& window, bool selected,
                            const InspectFlags& flags, bool json) {
  if (!json && flags.raw != "-") {
    std::printf("capture %u  %s  %s\n  source %s\n", capture.capture,
                hash::Hex(capture.id).substr(0, 16).c_str(),
                capture.title.c_str(), capture.source.c_str());
  }
  if (flags.raw != "-") {
    for (const auto& t : reader.tracks()) {
      PENSTOCK_ASSIGN_OR_RETURN(const Json j, DescribeTrack(reader, capture, t));
      if (json) {
        std::printf("%s\n",
                    j.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
      } else {
        PrintTrack(j);
      }
    }
  }
  if (!selected) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const ReadTrack* video,
                            ChooseVideo(reader, flags.track));
  std::uint64_t begin = 0, end = 0;
  PENSTOCK_RETURN_IF_ERROR(ParseWindow(window, video->row.rows, begin, end));
  if (!window.empty() && flags.raw != "-") {
    PENSTOCK_RETURN_IF_ERROR(PrintWindow(reader, *video, begin, end, json));
  }
  if (!flags.raw.empty()) {
    PENSTOCK_RETURN_IF_ERROR(WriteRaw(reader, *video, begin, end, flags.raw));
  }
  if (!flags.png.empty()) {
    PENSTOCK_RETURN_IF_ERROR(
        WriteSheet(reader, *video, begin, end, flags.cells, flags.png));
    std::fprintf(stderr, "wrote %s\n", flags.png.c_str());
  }
  return absl::OkStatus();
}

absl::Status CheckSelection(const InspectFlags& flags, const Target& target,
                            std::size_t captures) {
  if (captures == 1 || !target.capture.empty()) return absl::OkStatus();
  if (flags.png.empty() && flags.raw.empty()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = flags.target,
                    .what = "--png and --raw need one capture",
                    .found = absl::StrFormat("%d captures", captures),
                    .expected = "DATASET:CAPTURE or DATASET:CAPTURE:WINDOW",
                    .action = "name one capture"});
}

absl::Status Run(const InspectFlags& flags, bool json) {
  const Target target = SplitTarget(flags.target);
  std::error_code error;
  const bool shard_alone =
      std::filesystem::is_regular_file(target.path, error);
  std::unique_ptr<dataset::Dataset> dataset;
  std::unique_ptr<dataset::ShardReader> shard;
  std::vector<Named> all;
  if (shard_alone) {
    PENSTOCK_ASSIGN_OR_RETURN(shard, dataset::ShardReader::Open(target.path));
    for (const auto& c : shard->footer().captures) {
      all.push_back({static_cast<std::uint32_t>(all.size()), c.id, c.title, ""});
    }
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(dataset, dataset::Dataset::Open(target.path));
    for (std::uint32_t c = 0; c < dataset->index().captures.size(); ++c) {
      PENSTOCK_ASSIGN_OR_RETURN(const auto record, dataset->Capture(c));
      all.push_back({c, record.id, record.title, record.source});
    }
    if (!json && flags.raw != "-") {
      PENSTOCK_ASSIGN_OR_RETURN(const auto* manifest, dataset->manifest());
      std::printf("%s\n  sha256:%s  %s  %zu captures  %zu shards\n",
                  target.path.c_str(), dataset->id().c_str(),
                  manifest->verdict.c_str(), all.size(),
                  manifest->shards.size());
    }
  }
  PENSTOCK_RETURN_IF_ERROR(CheckSelection(flags, target, all.size()));
  std::optional<std::uint32_t> only;
  if (!target.capture.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(only, FindCapture(all, target.capture));
  }
  for (const Named& c : all) {
    if (only && *only != c.capture) continue;
    PENSTOCK_ASSIGN_OR_RETURN(
        auto reader, shard_alone ? CaptureReader::OfShard(*shard, c.capture)
                                 : CaptureReader::OfDataset(*dataset, c.capture));
    PENSTOCK_RETURN_IF_ERROR(InspectCapture(*reader, c, target.window,
                                            only || all.size() == 1, flags,
                                            json));
  }
  return absl::OkStatus();
}

}  // namespace

void AddInspectCommand(CLI::App& app, CommandContext& context) {
  auto* sub = app.add_subcommand(
      "inspect", "tracks, timing and inputs of a dataset, capture or shard");
  auto flags = std::make_shared<InspectFlags>();
  sub->add_option("target", flags->target,
                  "DATASET[:CAPTURE[:WINDOW]] or SHARD.pshard[:CAPTURE[:WINDOW]]; "
                  "WINDOW is START+COUNT or BEGIN-END in frames")
      ->required();
  sub->add_option("--png", flags->png, "write a contact sheet with the inputs");
  sub->add_option("--raw", flags->raw,
                  "write the decoded frames in the source's pixel format "
                  "(- is stdout)");
  sub->add_option("--track", flags->track, "video track (the first)")
      ->check(WholeNumber);
  sub->add_option("--cells", flags->cells, "frames on the sheet")
      ->check(CLI::Range(1, 512));
  sub->add_flag("--json", context.json, "JSON lines on stdout");
  sub->callback([flags, &context] {
    const absl::Status status = Run(*flags, context.json);
    context.exit_code = status.ok() ? 0 : PrintError(status);
  });
}

}  // namespace penstock::cli
