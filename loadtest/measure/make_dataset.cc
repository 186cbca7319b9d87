#include "loadtest/measure/make_dataset.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/format/capture_index.h"
#include "common/hash/hash.h"
#include "common/status/status.h"
#include "server/dataset/catalog.h"
#include "server/dataset/dataset_id.h"
#include "server/dataset/manifest.h"

namespace penstock::loadtest {
namespace {

std::string TitleOf(std::uint32_t i) { return absl::StrFormat("t%03d", i); }

// Ids ascend with the ordinal.
Digest256 IdOf(std::uint32_t capture) {
  Digest256 id{};
  for (int i = 0; i < 4; ++i) {
    id[i] = static_cast<std::uint8_t>(capture >> (8 * (3 - i)));
  }
  return id;
}

Digest256 DigestOf(std::uint32_t shard) {
  return hash::Sha256Of(absl::StrCat("shard ", shard));
}

format::CaptureIndexRows RowsOf(const DatasetShape& shape) {
  format::CaptureIndexRows out;
  for (std::uint32_t i = 0; i < shape.captures; ++i) {
    format::CaptureRow capture{};
    capture.id = IdOf(i);
    capture.first_track = i;
    capture.track_count = 1;
    out.captures.push_back(capture);
    format::TrackRow track{};
    track.capture = i;
    track.kind = format::TrackKind::kVideo;
    track.time_base_num = 1;
    track.time_base_den = track.rate_num = 60;
    track.rate_den = 1;
    track.flags = format::kTrackConstantRate;
    track.width = 1280;
    track.height = 720;
    track.rows = shape.frames;
    track.first_run = track.first_gop = i;
    track.run_count = track.gop_count = 1;
    out.tracks.push_back(track);
    format::RunRow run{};
    run.track = i;
    run.end_frame = shape.frames;
    out.runs.push_back(run);
    format::GopRow gop{};
    gop.track = i;
    gop.shard = i % shape.shards;
    gop.frame_count = shape.frames;
    out.gops.push_back(gop);
  }
  for (std::uint32_t i = 0; i < shape.shards; ++i) {
    out.shards.push_back({DigestOf(i), 1 << 30});
  }
  return out;
}

absl::Status Write(const std::string& path, std::span<const std::uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (file.flush()) return absl::OkStatus();
  return absl::UnavailableError(path + ": cannot be written");
}

absl::StatusOr<std::string> WriteCatalog(const std::string& path,
                                         const DatasetShape& shape) {
  PENSTOCK_ASSIGN_OR_RETURN(auto writer, dataset::CatalogWriter::Create(path));
  for (std::uint32_t i = 0; i < shape.captures; ++i) {
    PENSTOCK_RETURN_IF_ERROR(writer->AddCapture(
        {.ord = i,
         .id = IdOf(i),
         .source = absl::StrCat("made/", i, ".mp4"),
         .title = TitleOf(i % shape.titles),
         .session = absl::StrCat("s", i / 10),
         .player = absl::StrCat("p", i % 5000),
         .licence = "CC0",
         .duration_s = shape.frames / 60.0,
         .frames = shape.frames,
         .width = 1280,
         .height = 720,
         .fps = 60,
         .conditions = {{"map", absl::StrCat("m", i % 40)}}}));
    PENSTOCK_RETURN_IF_ERROR(writer->AddTrack({.ord = i,
                                               .capture = i,
                                               .name = "cam",
                                               .kind = "video",
                                               .codec = "h264",
                                               .rows = shape.frames}));
  }
  PENSTOCK_RETURN_IF_ERROR(writer->Finish());
  return writer->CanonicalRows();
}

// The entry of a file that was written.
absl::StatusOr<dataset::ManifestFile> EntryOf(const std::string& dir,
                                              const std::string& name) {
  std::ifstream file(dir + "/" + name, std::ios::binary);
  hash::Sha256 sha;
  std::vector<char> part(1 << 20);
  std::uint64_t bytes = 0;
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())),
         file.gcount() > 0) {
    sha.Update(std::string_view(part.data(), static_cast<std::size_t>(file.gcount())));
    bytes += static_cast<std::uint64_t>(file.gcount());
  }
  if (bytes == 0) return absl::UnavailableError(name + ": cannot be read");
  return dataset::ManifestFile{name, bytes, hash::Hex(sha.Finish())};
}

}  // namespace

absl::Status MakeDataset(const std::string& dir, const DatasetShape& shape) {
  std::filesystem::create_directories(dir);
  const auto index = format::EncodeCaptureIndex(RowsOf(shape));
  PENSTOCK_RETURN_IF_ERROR(Write(dir + "/" + dataset::kCaptureIndexFile, index));
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::string rows,
      WriteCatalog(dir + "/" + dataset::kCatalogFile, shape));
  dataset::Manifest m;
  std::vector<Digest256> digests;
  for (std::uint32_t i = 0; i < shape.shards; ++i) {
    digests.push_back(DigestOf(i));
    m.shards.push_back(absl::StrFormat("shards/%06d.pshard", i));
    m.files.push_back({m.shards.back(), 1 << 30, hash::Hex(digests.back())});
  }
  for (const char* name : {dataset::kCaptureIndexFile, dataset::kCatalogFile}) {
    PENSTOCK_ASSIGN_OR_RETURN(m.files.emplace_back(), EntryOf(dir, name));
  }
  m.id = hash::Hex(dataset::ComputeDatasetId(m.schema, rows, index, digests));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text,
                            dataset::EncodeManifest(std::move(m)));
  return Write(dir + "/" + dataset::kManifestFile, hash::AsBytes(text));
}

std::string FeedOverTitles(const std::string& dataset, const DatasetShape& shape,
                           std::uint32_t global_batch) {
  std::string out = absl::StrCat("name: scale\nglobal_batch: ", global_batch,
                                 "\nsources:\n");
  for (std::uint32_t i = 0; i < shape.titles; ++i) {
    absl::StrAppend(&out, "- {name: ", TitleOf(i), ", dataset: ", dataset,
                    ", filter: \"title = '", TitleOf(i), "'\", weight: ", 1 + i % 7,
                    ", view: {frames: 1, track: cam}}\n");
  }
  return out + "outputs:\n- {name: times, times: {}}\n";
}

}  // namespace penstock::loadtest
