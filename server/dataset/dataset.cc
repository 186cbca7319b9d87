#include "server/dataset/dataset.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/hash/hash.h"
#include "common/status/status.h"
#include "server/dataset/catalog_rows.h"
#include "server/dataset/dataset_id.h"
#include "server/dataset/filter.h"
#include "server/dataset/labels.h"
#include "server/dataset/mapped_file.h"
#include "server/dataset/sqlite.h"

namespace penstock::dataset {
namespace {

constexpr char kTables[] =
    "index:spans_of_capture table:captures table:conditions table:spans "
    "table:tracks ";
// Catalogues of earlier imports lack them; without them filters are slower.
constexpr char kIndexes[] =
    "index:captures_by_player index:captures_by_session "
    "index:captures_by_title ";

// Columns and track names that a dataset keeps read.
constexpr std::size_t kKeptMax = 16;
// A value of every capture is read when so many have been asked for one by one.
constexpr std::uint64_t kAskedOf = 16;
constexpr std::uint32_t kNoTrackRow = UINT32_MAX;
constexpr std::size_t kIdDigits = 64;

absl::Status CheckFolder(const std::string& dir) {
  struct stat st {};
  errno = 0;
  const bool there = ::stat(dir.c_str(), &st) == 0;
  const int why = errno;
  const bool folder = there && S_ISDIR(st.st_mode);
  if (folder && ::stat((dir + "/" + kManifestFile).c_str(), &st) == 0) {
    return absl::OkStatus();
  }
  return MakeError(
      absl::StatusCode::kNotFound,
      {.where = dir,
       .what = folder ? "not a dataset version, or an import that did not "
                        "finish"
                      : "the dataset cannot be opened",
       .found = folder  ? "a folder without manifest.json"
                : there ? "a file, no folder"
                        : std::strerror(why),
       .expected = "the folder that `penstock import --out` published",
       .action = "correct the path (a feed's paths start at the feed file)"});
}

// A file of the manifest, with the size it has now.
absl::Status CheckSize(const Manifest& manifest, const std::string& dir,
                       const char* name) {
  const std::string path = dir + "/" + name;
  const ManifestFile* file = manifest.Find(name);
  struct stat st {};
  const bool there = ::stat(path.c_str(), &st) == 0;
  const auto bytes = there ? static_cast<std::uint64_t>(st.st_size) : 0;
  if (file != nullptr && there && bytes == file->bytes) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kDataLoss,
      {.where = path,
       .what = file == nullptr ? "the manifest does not list the file"
                               : "the file is not as the manifest lists it",
       .found = there ? absl::StrCat(bytes, " bytes") : "no file",
       .expected = file == nullptr ? "" : absl::StrCat(file->bytes, " bytes"),
       .action = "copy the dataset again from its origin"});
}

// The catalogue holds our tables and nothing that runs.
absl::Status CheckSchema(sqlite3* db, const std::string& path) {
  PENSTOCK_ASSIGN_OR_RETURN(
      Statement s,
      Statement::Prepare(db,
                         "SELECT type,name FROM sqlite_schema WHERE name NOT "
                         "LIKE 'sqlite_autoindex%' ORDER BY type,name LIMIT "
                         "20"));
  std::string objects;
  for (;;) {
    PENSTOCK_ASSIGN_OR_RETURN(bool row, s.Step());
    if (!row) break;
    absl::StrAppend(&objects, s.Text(0), ":", s.Text(1), " ");
  }
  if (objects == kTables || objects == absl::StrCat(kIndexes, kTables)) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kDataLoss,
                   {.where = path,
                    .what = "not a catalogue of a dataset",
                    .found = objects,
                    .expected = absl::StrCat(kIndexes, kTables),
                    .action = "copy the dataset again from its origin"});
}

absl::StatusOr<DbPtr> OpenCatalog(const std::string& path) {
  auto db = OpenCatalogDb(path);
  absl::Status status = db.status();
  if (status.ok()) status = CheckSchema(db->get(), path);
  if (!status.ok()) return Annotate(status, path);
  return db;
}

absl::Status StatFile(const std::string& dir, const char* name,
                      std::uint64_t& bytes, std::int64_t& time_ns) {
  struct stat st {};
  const std::string path = dir + "/" + name;
  if (::stat(path.c_str(), &st) != 0) return ErrnoError(errno, path);
  bytes = static_cast<std::uint64_t>(st.st_size);
  time_ns = st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec;
  return absl::OkStatus();
}

absl::Status NoRow(const std::string& dir, const char* kind, std::uint64_t row,
                   std::uint64_t count) {
  return absl::OutOfRangeError(
      absl::StrCat(dir, ": no ", kind, " ", row, ": the dataset has ", count));
}

}  // namespace

struct Dataset::Impl {
  std::string dir, id;
  MappedFile file;
  format::CaptureIndexView index;
  mutable std::mutex mutex;  // guards what follows
  mutable std::optional<Manifest> manifest;
  mutable DbPtr db;

  // Kept of every capture.
  mutable std::map<std::string, TextColumn> columns;
  mutable std::map<std::string, std::vector<std::uint32_t>> named;
  mutable std::map<std::string, std::uint64_t> asked;

  // Whether it is time to read something of every capture: one pass, or what
  // one by one comes to.
  bool ReadAll(const std::string& what, std::size_t captures,
               std::size_t kept) const {
    std::uint64_t& sum = asked[what];
    sum += captures;
    return kept < kKeptMax && sum > index.captures.size() / kAskedOf;
  }
  absl::StatusOr<const Manifest*> ReadManifest() const;
  absl::Status OpenIndex();
  absl::StatusOr<sqlite3*> Db() const;
  absl::Status CheckCaptures(std::span<const std::uint32_t> captures) const;
  absl::StatusOr<std::vector<std::string>> Values(
      std::span<const std::uint32_t> captures, const std::string& column) const;
  absl::StatusOr<std::vector<std::uint32_t>> NamedTracks(
      std::span<const std::uint32_t> captures, const std::string& name) const;
  absl::StatusOr<std::vector<std::uint32_t>> NamedTracksOfAll(
      const std::string& name) const;
  absl::StatusOr<std::uint32_t> FirstTrack(std::uint32_t capture,
                                           format::TrackKind kind) const;
  absl::Status NoTrack(std::uint32_t capture, std::string_view name) const;
};

absl::StatusOr<DatasetStamp> DatasetStamp::Of(const std::string& dir) {
  PENSTOCK_RETURN_IF_ERROR(CheckFolder(dir));
  DatasetStamp out;
  // A line of the manifest's own fields: one blank before it, and no text of JSON
  // has a line feed.
  constexpr std::string_view kField = "\n \"id\": \"";
  const std::string path = dir + "/" + kManifestFile;
  PENSTOCK_ASSIGN_OR_RETURN(
      const FileDigest manifest,
      DigestFile(path, kField.size() + kIdDigits, [&](std::string_view part) {
        const std::size_t at = part.find(kField);
        if (!out.id.empty() || at == std::string_view::npos) return;
        const std::string_view id = part.substr(at + kField.size(), kIdDigits);
        if (id.size() == kIdDigits) out.id = id;
      }));
  Digest256 digest;
  if (!hash::ParseHex(out.id, digest)) {
    return MakeError(absl::StatusCode::kDataLoss,
                     {.where = path,
                      .what = "no dataset id",
                      .found = out.id,
                      .expected = "64 hex digits in the field \"id\"",
                      .action = "copy the dataset again from its origin"});
  }
  out.manifest_bytes = manifest.bytes;
  out.manifest_xxh3 = manifest.xxh3;
  PENSTOCK_RETURN_IF_ERROR(
      StatFile(dir, kCaptureIndexFile, out.index_bytes, out.index_time_ns));
  PENSTOCK_RETURN_IF_ERROR(
      StatFile(dir, kCatalogFile, out.catalog_bytes, out.catalog_time_ns));
  return out;
}

Dataset::Dataset(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Dataset::~Dataset() = default;

absl::StatusOr<std::unique_ptr<Dataset>> Dataset::Open(const std::string& dir) {
  PENSTOCK_RETURN_IF_ERROR(CheckFolder(dir));
  auto impl = std::make_unique<Impl>();
  impl->dir = dir;
  PENSTOCK_ASSIGN_OR_RETURN(const Manifest* manifest, impl->ReadManifest());
  impl->id = manifest->id;
  for (const char* name : {kCaptureIndexFile, kCatalogFile}) {
    PENSTOCK_RETURN_IF_ERROR(CheckSize(*manifest, dir, name));
  }
  PENSTOCK_RETURN_IF_ERROR(impl->OpenIndex());
  if (impl->index.shards.size() != manifest->shards.size()) {
    return MakeError(
        absl::StatusCode::kDataLoss,
        {.where = dir + "/" + kCaptureIndexFile,
         .what = "the capture index has another number of shards",
         .found = absl::StrCat(impl->index.shards.size()),
         .expected = absl::StrCat(manifest->shards.size(), " (manifest)"),
         .action = "copy the dataset again from its origin"});
  }
  PENSTOCK_RETURN_IF_ERROR(impl->Db().status());
  return std::unique_ptr<Dataset>(new Dataset(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<Dataset>> Dataset::OpenAs(
    const std::string& dir, const DatasetStamp& stamp) {
  auto impl = std::make_unique<Impl>();
  impl->dir = dir;
  impl->id = stamp.id;
  PENSTOCK_RETURN_IF_ERROR(impl->OpenIndex());
  return std::unique_ptr<Dataset>(new Dataset(std::move(impl)));
}

absl::StatusOr<const Manifest*> Dataset::Impl::ReadManifest() const {
  if (manifest) return &*manifest;
  const std::string path = dir + "/" + kManifestFile;
  PENSTOCK_ASSIGN_OR_RETURN(std::string text,
                            ReadSmallFile(path, kManifestBytesMax));
  PENSTOCK_ASSIGN_OR_RETURN(manifest, ParseManifest(text, path));
  return &*manifest;
}

absl::Status Dataset::Impl::OpenIndex() {
  const std::string path = dir + "/" + kCaptureIndexFile;
  PENSTOCK_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  auto opened = format::OpenCaptureIndex(file.bytes());
  if (!opened.ok()) return Annotate(opened.status(), path);
  index = *opened;
  return absl::OkStatus();
}

absl::StatusOr<sqlite3*> Dataset::Impl::Db() const {
  if (db == nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(db, OpenCatalog(dir + "/" + kCatalogFile));
  }
  return db.get();
}

const std::string& Dataset::dir() const { return impl_->dir; }
const std::string& Dataset::id() const { return impl_->id; }
absl::StatusOr<const Manifest*> Dataset::manifest() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->ReadManifest();
}
const format::CaptureIndexView& Dataset::index() const { return impl_->index; }
std::span<const std::uint8_t> Dataset::index_bytes() const {
  return impl_->file.bytes();
}

absl::StatusOr<CaptureRecord> Dataset::Capture(std::uint32_t capture) const {
  std::lock_guard lock(impl_->mutex);
  PENSTOCK_ASSIGN_OR_RETURN(sqlite3* const db, impl_->Db());
  PENSTOCK_ASSIGN_OR_RETURN(auto rows, ReadCaptures(db, capture));
  if (!rows.empty()) return std::move(rows.front());
  return NoRow(impl_->dir, "capture", capture, impl_->index.captures.size());
}

absl::StatusOr<std::vector<TrackRecord>> Dataset::TracksOf(
    std::uint32_t capture) const {
  std::lock_guard lock(impl_->mutex);
  PENSTOCK_ASSIGN_OR_RETURN(sqlite3* const db, impl_->Db());
  return ReadTracks(db, capture);
}

absl::StatusOr<TrackRecord> Dataset::Track(std::uint32_t track) const {
  if (track >= impl_->index.tracks.size()) {
    return NoRow(impl_->dir, "track", track, impl_->index.tracks.size());
  }
  PENSTOCK_ASSIGN_OR_RETURN(auto tracks,
                            TracksOf(impl_->index.tracks[track].capture));
  for (TrackRecord& t : tracks) {
    if (t.ord == track) return std::move(t);
  }
  return MakeError(absl::StatusCode::kDataLoss,
                   {.where = impl_->dir,
                    .what = "the catalogue lacks a track of the capture index",
                    .found = absl::StrCat("no track ", track),
                    .expected = "the tracks of captures.pidx",
                    .action = "copy the dataset again from its origin"});
}

absl::StatusOr<std::vector<SpanRecord>> Dataset::SpansOf(
    std::uint32_t capture) const {
  std::lock_guard lock(impl_->mutex);
  PENSTOCK_ASSIGN_OR_RETURN(sqlite3* const db, impl_->Db());
  return ReadSpans(db, capture);
}

absl::Status Dataset::Impl::NoTrack(std::uint32_t capture,
                                    std::string_view name) const {
  std::string names;
  if (auto tracks = ReadTracks(db.get(), capture); tracks.ok()) {
    for (const TrackRecord& t : *tracks) {
      absl::StrAppend(&names, names.empty() ? "" : ", ", t.name, " (", t.kind,
                      ")");
    }
  }
  return MakeError(
      absl::StatusCode::kNotFound,
      {.where = absl::StrCat(dir, ", capture ", capture),
       .what = name.empty() ? "no track of the kind the feed asks for"
                            : absl::StrCat("no track \"", std::string(name),
                                           "\" of the kind the feed asks for"),
       .found = names.empty() ? "no tracks" : names,
       .expected = "a track of this kind in every capture of the source",
       .action = "name one of these, or leave such captures out by a filter"});
}

absl::Status Dataset::Impl::CheckCaptures(
    std::span<const std::uint32_t> captures) const {
  for (const std::uint32_t capture : captures) {
    if (capture < index.captures.size()) continue;
    return NoRow(dir, "capture", capture, index.captures.size());
  }
  return absl::OkStatus();
}

// Of every capture; kNoTrackRow where it has none.
absl::StatusOr<std::vector<std::uint32_t>> Dataset::Impl::NamedTracksOfAll(
    const std::string& name) const {
  PENSTOCK_ASSIGN_OR_RETURN(
      Statement query,
      Statement::Prepare(db.get(),
                         "SELECT capture,ord FROM tracks WHERE name=?"));
  query.Bind(name);
  std::vector<std::uint32_t> out(index.captures.size(), kNoTrackRow);
  for (;;) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return out;
    const auto capture = static_cast<std::uint64_t>(query.Int(0));
    const auto ord = static_cast<std::uint64_t>(query.Int(1));
    if (capture < out.size() && ord < index.tracks.size()) {
      out[capture] = static_cast<std::uint32_t>(ord);
    }
  }
}

// kNoTrackRow where a capture has none.
absl::StatusOr<std::vector<std::uint32_t>> Dataset::Impl::NamedTracks(
    std::span<const std::uint32_t> captures, const std::string& name) const {
  auto kept = named.find(name);
  if (kept == named.end() &&
      ReadAll("track " + name, captures.size(), named.size())) {
    PENSTOCK_ASSIGN_OR_RETURN(auto all, NamedTracksOfAll(name));
    kept = named.emplace(name, std::move(all)).first;
  }
  std::vector<std::uint32_t> out;
  out.reserve(captures.size());
  if (kept != named.end()) {
    for (const std::uint32_t c : captures) out.push_back(kept->second[c]);
    return out;
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      Statement query,
      Statement::Prepare(db.get(),
                         "SELECT ord FROM tracks WHERE capture=? AND name=?"));
  for (const std::uint32_t capture : captures) {
    query.Reset();
    query.Bind(std::int64_t{capture}).Bind(name);
    PENSTOCK_ASSIGN_OR_RETURN(const bool row, query.Step());
    const std::int64_t ord = row ? query.Int(0) : -1;
    const bool there =
        ord >= 0 && static_cast<std::uint64_t>(ord) < index.tracks.size();
    out.push_back(there ? static_cast<std::uint32_t>(ord) : kNoTrackRow);
  }
  return out;
}

absl::StatusOr<std::vector<std::string>> Dataset::Impl::Values(
    std::span<const std::uint32_t> captures, const std::string& column) const {
  auto kept = columns.find(column);
  if (kept == columns.end() &&
      ReadAll("column " + column, captures.size(), columns.size())) {
    PENSTOCK_ASSIGN_OR_RETURN(
        TextColumn all, ReadColumn(db.get(), column, index.captures.size()));
    kept = columns.emplace(column, std::move(all)).first;
  }
  if (kept == columns.end()) return ReadValues(db.get(), column, captures);
  std::vector<std::string> out;
  out.reserve(captures.size());
  for (const std::uint32_t c : captures) out.push_back(kept->second.Of(c));
  return out;
}

absl::StatusOr<std::uint32_t> Dataset::Impl::FirstTrack(
    std::uint32_t capture, format::TrackKind kind) const {
  const format::CaptureRow& row = index.captures[capture];
  const std::uint64_t end = std::uint64_t{row.first_track} + row.track_count;
  for (std::uint64_t t = row.first_track; t < end && t < index.tracks.size();
       ++t) {
    if (index.tracks[t].kind == kind) return static_cast<std::uint32_t>(t);
  }
  return NoTrack(capture, "");
}

absl::StatusOr<std::vector<std::uint32_t>> Dataset::FindTracks(
    std::span<const std::uint32_t> captures, format::TrackKind kind,
    std::string_view name) const {
  std::lock_guard lock(impl_->mutex);
  PENSTOCK_RETURN_IF_ERROR(impl_->Db().status());
  PENSTOCK_RETURN_IF_ERROR(impl_->CheckCaptures(captures));
  std::vector<std::uint32_t> out;
  if (name.empty()) {
    out.reserve(captures.size());
    for (const std::uint32_t capture : captures) {
      PENSTOCK_ASSIGN_OR_RETURN(out.emplace_back(),
                                impl_->FirstTrack(capture, kind));
    }
    return out;
  }
  PENSTOCK_ASSIGN_OR_RETURN(out,
                            impl_->NamedTracks(captures, std::string(name)));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == kNoTrackRow) return impl_->NoTrack(captures[i], name);
    const format::TrackRow& track = impl_->index.tracks[out[i]];
    if (track.capture != captures[i] || track.kind != kind) {
      return impl_->NoTrack(captures[i], name);
    }
  }
  return out;
}

absl::StatusOr<std::vector<std::string>> Dataset::Labels(
    std::span<const std::uint32_t> captures,
    std::span<const std::string> by) const {
  std::lock_guard lock(impl_->mutex);
  PENSTOCK_RETURN_IF_ERROR(impl_->Db().status());
  PENSTOCK_RETURN_IF_ERROR(impl_->CheckCaptures(captures));
  std::vector<std::string> out(captures.size());
  for (std::size_t c = 0; c < by.size(); ++c) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> values,
                              impl_->Values(captures, by[c]));
    for (std::size_t i = 0; i < captures.size(); ++i) {
      if (c > 0) out[i] += '|';
      out[i] += values[i];
    }
  }
  return out;
}

absl::StatusOr<std::string> Dataset::ShardPath(std::uint32_t shard) const {
  PENSTOCK_ASSIGN_OR_RETURN(const Manifest* m, manifest());
  if (shard >= m->shards.size()) {
    return NoRow(impl_->dir, "shard", shard, m->shards.size());
  }
  return impl_->dir + "/" + m->shards[shard];
}

absl::StatusOr<std::vector<std::uint32_t>> Dataset::Select(
    std::string_view filter) const {
  const std::uint64_t count = impl_->index.captures.size();
  std::vector<std::uint32_t> all;
  if (filter.empty()) {
    for (std::uint64_t i = 0; i < count; ++i) {
      all.push_back(static_cast<std::uint32_t>(i));
    }
    return all;
  }
  std::lock_guard lock(impl_->mutex);
  PENSTOCK_ASSIGN_OR_RETURN(sqlite3* const db, impl_->Db());
  auto out = SelectCaptures(db, filter, count);
  if (!out.ok()) return Annotate(out.status(), impl_->dir);
  if (!out->empty() && out->back() >= count) {
    return NoRow(impl_->dir, "capture", out->back(), count);
  }
  return out;
}

Digest256 Dataset::DigestOf(std::span<const std::uint32_t> captures) const {
  std::vector<Digest256> ids;
  ids.reserve(captures.size());
  for (std::uint32_t c : captures) ids.push_back(impl_->index.captures[c].id);
  return SelectionDigest(ids);
}

}  // namespace penstock::dataset
