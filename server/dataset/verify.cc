#include "server/dataset/verify.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "absl/strings/str_format.h"
#include "common/format/shard.h"
#include "common/hash/hash.h"
#include "common/status/status.h"
#include "server/dataset/catalog.h"
#include "server/dataset/dataset_id.h"
#include "server/dataset/manifest.h"
#include "server/dataset/mapped_file.h"

namespace penstock::dataset {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::uint8_t>;

// A range of a shard that holds one GOP or one segment.
struct Piece {
  std::uint64_t offset = 0, bytes = 0;
  std::string name;
  std::uint32_t capture = 0;
};

std::string KindName(format::TrackKind kind) {
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

class Verifier {
 public:
  Verifier(std::string dir, Manifest manifest)
      : dir_(std::move(dir)), manifest_(std::move(manifest)) {}

  absl::StatusOr<VerifyReport> Run() {
    report_.id = manifest_.id;
    CheckIndex();
    CheckCatalog();
    for (std::size_t i = 0; i < manifest_.shards.size(); ++i) CheckShard(i);
    CheckOtherFiles();
    CheckId();
    PENSTOCK_RETURN_IF_ERROR(denied_);
    return std::move(report_);
  }

 private:
  void Add(std::string file, std::string place, std::uint64_t offset,
           std::string what, std::string capture = "") {
    report_.faults.push_back({std::move(file), std::move(place),
                              std::move(capture), offset, std::move(what)});
  }

  // Maps a listed file; false when it is missing or its hash differs.
  bool HashMatches(const std::string& path, std::optional<MappedFile>& out) {
    const ManifestFile* entry = manifest_.Find(path);
    auto mapped = MappedFile::Open(dir_ + "/" + path);
    if (mapped.status().code() == absl::StatusCode::kPermissionDenied) {
      denied_ = mapped.status();  // says nothing about the data
    }
    if (!mapped.ok()) {
      Add(path, "file", 0, std::string(mapped.status().message()));
      return false;
    }
    out = *std::move(mapped);
    report_.bytes += out->bytes().size();
    if (entry == nullptr) {
      Add(path, "file", 0, "is not listed in the manifest");
      return false;
    }
    if (out->bytes().size() != entry->bytes) {
      Add(path, "file", 0,
          absl::StrFormat("has %d bytes, expected %d", out->bytes().size(),
                          entry->bytes));
      return false;
    }
    return hash::Hex(hash::Sha256Of(out->bytes())) == entry->sha256;
  }

  void CheckIndex() {
    const std::size_t before = report_.faults.size();
    const bool same = HashMatches(kCaptureIndexFile, index_file_);
    if (!index_file_) return;
    auto status = format::CheckCaptureIndex(index_file_->bytes());
    if (!status.ok()) {
      Add(kCaptureIndexFile, "rows", 0, std::string(status.message()));
    } else {
      index_ = *format::OpenCaptureIndex(index_file_->bytes());
      index_good_ = true;
      if (!same && report_.faults.size() == before) {
        Add(kCaptureIndexFile, "padding", 0, "SHA-256 differs");
      }
    }
  }

  void CheckCatalog() {
    const std::size_t before = report_.faults.size();
    std::optional<MappedFile> file;
    const bool same = HashMatches(kCatalogFile, file);
    if (!same && report_.faults.size() == before) {
      Add(kCatalogFile, "file", 0, "SHA-256 differs");
    }
    if (same) {
      auto rows = ReadCanonicalRows(dir_ + "/" + kCatalogFile);
      if (rows.ok()) {
        canonical_rows_ = *std::move(rows);
        catalog_good_ = true;
      } else {
        Add(kCatalogFile, "rows", 0, std::string(rows.status().message()));
      }
    }
  }

  std::string CaptureName(std::uint32_t capture) const {
    return index_good_ && capture < index_.captures.size()
               ? hash::Hex(index_.captures[capture].id)
               : "";
  }

  // What the capture index says lies in a shard.
  std::vector<Piece> PiecesOf(std::uint32_t shard) const {
    std::vector<Piece> pieces;
    if (!index_good_) return pieces;
    for (const auto& g : index_.gops) {
      if (g.shard != shard) continue;
      const auto& t = index_.tracks[g.track];
      pieces.push_back({g.offset, g.bytes,
                        absl::StrFormat("video GOP %d of track %d",
                                        &g - &index_.gops[t.first_gop],
                                        t.ordinal),
                        t.capture});
    }
    for (const auto& s : index_.segments) {
      if (s.shard != shard) continue;
      const auto& t = index_.tracks[s.track];
      pieces.push_back({s.offset, s.bytes,
                        absl::StrFormat("%s block %d of track %d",
                                        KindName(t.kind),
                                        &s - &index_.segments[t.first_segment],
                                        t.ordinal),
                        t.capture});
    }
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return a.offset < b.offset;
    });
    return pieces;
  }

  void CheckShard(std::size_t shard) {
    const std::string& path = manifest_.shards[shard];
    const std::size_t before = report_.faults.size();
    std::optional<MappedFile> file;
    const bool same = HashMatches(path, file);
    if (!file) return;
    const Bytes bytes = file->bytes();
    if (bytes.size() >= format::kShardHeaderBytes) {
      auto status = format::CheckShardHeader(bytes);
      if (!status.ok()) Add(path, "header", 0, std::string(status.message()));
    }
    std::uint64_t end = CheckFooter(path, bytes);
    std::uint64_t at = format::kShardHeaderBytes;
    for (const Piece& p : PiecesOf(static_cast<std::uint32_t>(shard))) {
      CheckPadding(path, bytes, at, std::min<std::uint64_t>(p.offset, end));
      CheckPiece(path, bytes, p);
      at = std::max(at, p.offset + p.bytes);
    }
    if (index_good_) CheckPadding(path, bytes, at, end);
    if (!same && report_.faults.size() == before) {
      Add(path, "unknown", 0, "SHA-256 differs");
    }
  }

  // Returns where the footer starts, or the size of the file.
  std::uint64_t CheckFooter(const std::string& path, Bytes bytes) {
    if (bytes.size() < format::kShardHeaderBytes + format::kShardTrailerBytes) {
      return bytes.size();
    }
    auto place = format::ParseShardTrailer(
        bytes.last(format::kShardTrailerBytes), bytes.size());
    if (!place.ok()) {
      Add(path, "trailer", bytes.size() - format::kShardTrailerBytes,
          std::string(place.status().message()));
      return bytes.size();
    }
    auto footer = format::ParseShardFooter(
        bytes.subspan(place->offset, place->bytes), *place);
    if (!footer.ok()) {
      Add(path, "footer", place->offset, std::string(footer.status().message()));
    }
    return place->offset;
  }

  void CheckPiece(const std::string& path, Bytes bytes, const Piece& piece) {
    if (piece.offset > bytes.size() ||
        piece.bytes > bytes.size() - piece.offset) {
      Add(path, piece.name, piece.offset, "lies past the end of the file",
          CaptureName(piece.capture));
      return;
    }
    for (std::uint64_t at = 0; at < piece.bytes;) {
      auto block =
          format::ParseBlock(bytes.subspan(piece.offset + at, piece.bytes - at));
      if (!block.ok()) {
        Add(path, piece.name, piece.offset + at,
            std::string(block.status().message()), CaptureName(piece.capture));
        return;
      }
      ++report_.blocks;
      at += block->bytes;
    }
  }

  // Bytes between blocks are zero.
  void CheckPadding(const std::string& path, Bytes bytes, std::uint64_t begin,
                    std::uint64_t end) {
    for (std::uint64_t i = begin; i < end && i < bytes.size(); ++i) {
      if (bytes[i] == 0) continue;
      Add(path, "padding", i, absl::StrFormat("byte is %02x, expected 00",
                                              bytes[i]));
      return;
    }
  }

  void CheckOtherFiles() {
    std::error_code error;
    for (fs::recursive_directory_iterator it(dir_, error), end;
         !error && it != end; it.increment(error)) {
      if (it->is_directory()) continue;
      const std::string path =
          fs::path(it->path()).lexically_relative(dir_).generic_string();
      if (path != kManifestFile && manifest_.Find(path) == nullptr) {
        Add(path, "file", 0, "is not part of this version");
      }
    }
    for (const ManifestFile& f : manifest_.files) {
      const bool checked = f.path == kCatalogFile ||
                           f.path == kCaptureIndexFile ||
                           std::find(manifest_.shards.begin(),
                                     manifest_.shards.end(),
                                     f.path) != manifest_.shards.end();
      std::optional<MappedFile> file;
      if (!checked && !HashMatches(f.path, file) && file) {
        Add(f.path, "file", 0, "SHA-256 differs");
      }
    }
  }

  void CheckId() {
    if (!index_good_ || !catalog_good_) return;
    std::vector<Digest256> digests;
    for (const std::string& path : manifest_.shards) {
      Digest256 d{};
      const ManifestFile* f = manifest_.Find(path);
      if (f == nullptr || !hash::ParseHex(f->sha256, d)) return;
      digests.push_back(d);
    }
    const std::string id = hash::Hex(ComputeDatasetId(
        manifest_.schema, canonical_rows_, index_file_->bytes(), digests));
    if (id != manifest_.id) {
      Add(kManifestFile, "id", 0,
          "is " + manifest_.id + ", the content gives " + id);
    }
  }

  std::string dir_;
  Manifest manifest_;
  VerifyReport report_;
  absl::Status denied_;  // a file that may not be read
  std::optional<MappedFile> index_file_;
  format::CaptureIndexView index_;
  std::string canonical_rows_;
  bool index_good_ = false, catalog_good_ = false;
};

}  // namespace

absl::StatusOr<VerifyReport> VerifyDataset(const std::string& dir) {
  const std::string path = dir + "/" + kManifestFile;
  auto text = ReadSmallFile(path, kManifestBytesMax);
  if (text.status().code() == absl::StatusCode::kPermissionDenied) {
    return text.status();
  }
  if (!text.ok()) {
    std::error_code error;
    return MakeError(
        absl::StatusCode::kNotFound,
        {.where = dir,
         .what = "no dataset here",
         .found = fs::exists(dir, error) ? "a folder without manifest.json" : "nothing",
         .expected = "a folder that `penstock import` made",
         .action = "correct the path"});
  }
  auto manifest = ParseManifest(*text, path);
  if (!manifest.ok()) {
    VerifyReport report;
    report.bytes = text->size();
    report.faults.push_back({kManifestFile, "manifest", "", 0,
                             std::string(manifest.status().message())});
    return report;
  }
  return Verifier(dir, *std::move(manifest)).Run();
}

}  // namespace penstock::dataset
