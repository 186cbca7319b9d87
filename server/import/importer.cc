#include "server/import/importer.h"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/status/status.h"
#include "server/dataset/catalog.h"
#include "server/dataset/dataset_id.h"
#include "server/dataset/manifest.h"
#include "server/import/shard_writer.h"
#include "server/import/staging.h"

namespace penstock::import {
namespace {

using Json = nlohmann::json;

// Ingests captures on several threads and hands them out in order, at most a
// few ahead of the one that is being written.
class IngestPool {
 public:
  IngestPool(std::vector<CaptureSource> sources, std::string spool_dir,
             int jobs, const std::atomic<bool>& cancel,
             std::function<void(std::size_t, const absl::Status&)> done)
      : sources_(std::move(sources)),
        results_(sources_.size()),
        spool_dir_(std::move(spool_dir)),
        window_(static_cast<std::size_t>(jobs) * 2),
        cancel_(cancel),
        done_(std::move(done)) {
    const int threads =
        std::min<int>(jobs, static_cast<int>(std::max<std::size_t>(
                                sources_.size(), 1)));
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  }
  ~IngestPool() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (auto& t : threads_) t.join();
  }

  // The result for source `i`; each may be taken once, in ascending order.
  absl::StatusOr<IngestedCapture> Take(std::size_t i) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return results_[i].has_value(); });
    taken_ = i + 1;
    absl::StatusOr<IngestedCapture> result = std::move(*results_[i]);
    lock.unlock();
    changed_.notify_all();
    return result;
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] {
        return stop_ || next_ == sources_.size() || next_ < taken_ + window_;
      });
      if (stop_ || next_ == sources_.size()) return;
      const std::size_t i = next_++;
      CaptureSource source = sources_[i];
      lock.unlock();
      auto result = IngestCapture(std::move(source), spool_dir_, cancel_);
      lock.lock();
      done_(i, result.status());
      results_[i].emplace(std::move(result));
      changed_.notify_all();
    }
  }

  std::vector<CaptureSource> sources_;
  std::vector<std::optional<absl::StatusOr<IngestedCapture>>> results_;
  std::string spool_dir_;
  std::size_t window_;
  const std::atomic<bool>& cancel_;
  std::function<void(std::size_t, const absl::Status&)> done_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0, taken_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

// A path as text: bytes that are not UTF-8 become U+FFFD.
std::string Utf8(const std::string& path) {
  return Json::parse(Json(path).dump(-1, ' ', false,
                                     Json::error_handler_t::replace));
}

// Hashes the sources, sorts them by id, and takes out doubles and what cannot be
// read.
absl::StatusOr<std::vector<CaptureSource>> PrepareSources(
    const std::vector<std::string>& paths, ImportReport& report) {
  PENSTOCK_ASSIGN_OR_RETURN(auto sources, ScanSources(paths));
  for (auto& s : sources) {
    if (s.fault.ok()) s.fault = HashSource(s);
    if (!s.fault.ok()) report.refused.emplace_back(s.video, s.fault);
  }
  std::erase_if(sources, [](const CaptureSource& s) { return !s.fault.ok(); });
  std::stable_sort(
      sources.begin(), sources.end(),
      [](const CaptureSource& a, const CaptureSource& b) { return a.id < b.id; });
  std::vector<CaptureSource> unique;
  for (auto& s : sources) {
    if (!unique.empty() && unique.back().id == s.id) {
      if (unique.back().video != s.video) {
        report.refused.emplace_back(
            s.video, absl::AlreadyExistsError("same content as " +
                                              unique.back().video +
                                              "; imported once"));
      }
      continue;
    }
    unique.push_back(std::move(s));
  }
  return unique;
}

double RateOf(const IngestedVideo& v) {
  return v.constant_rate ? static_cast<double>(v.stream.average_rate.num) /
                               static_cast<double>(v.stream.average_rate.den)
                         : 0;
}

// The catalogue rows of one written capture.
absl::Status AddToCatalog(const IngestedCapture& c, const WrittenCapture& w,
                          const format::CaptureIndexRows& rows,
                          dataset::CatalogWriter& catalog) {
  const auto ord = static_cast<std::uint32_t>(rows.captures.size() - 1);
  const format::CaptureRow& row = rows.captures[ord];
  const CaptureMapping& m = c.source.mapping;
  const IngestedVideo& v = c.videos[0];
  dataset::CaptureRecord record;
  record.ord = ord;
  record.id = c.source.id;
  record.source = Utf8(c.source.video);
  record.title = m.title;
  record.session = m.session;
  record.player = m.player;
  record.licence = m.licence;
  record.duration_s = static_cast<double>(row.duration_ns) / 1e9;
  record.frames = v.frames.size();
  record.width = v.stream.codec.width;
  record.height = v.stream.codec.height;
  record.fps = RateOf(v);
  record.damaged = c.DamagedFrames() + c.LostFrames();
  record.conditions = m.conditions;
  PENSTOCK_RETURN_IF_ERROR(catalog.AddCapture(record));
  for (std::uint32_t t = 0; t < row.track_count; ++t) {
    dataset::TrackRecord track;
    track.ord = row.first_track + t;
    track.capture = ord;
    track.ordinal = t;
    track.name = w.tracks[t].name;
    track.kind = w.tracks[t].kind;
    track.codec = w.tracks[t].codec;
    track.rows = rows.tracks[track.ord].rows;
    track.schema = w.tracks[t].schema;
    track.details = w.tracks[t].details;
    PENSTOCK_RETURN_IF_ERROR(catalog.AddTrack(track));
  }
  for (const TextMapping& s : w.spans) {
    PENSTOCK_RETURN_IF_ERROR(catalog.AddSpan(
        {ord, row.first_track, s.text, s.start_ns, s.end_ns, s.author, "1"}));
  }
  return absl::OkStatus();
}

// The union of the tracks of all captures: name -> kind and columns.
void MergeSchema(const WrittenCapture& w, Json& schema) {
  for (const WrittenTrack& t : w.tracks) {
    Json& entry = schema[t.name];
    entry["kind"] = t.kind;
    const Json track = Json::parse(t.schema);
    if (track.contains("columns")) {
      for (const Json& c : track["columns"]) {
        Json& columns = entry["columns"];
        if (!columns.is_array()) columns = Json::array();
        if (std::find(columns.begin(), columns.end(), c) == columns.end()) {
          columns.push_back(c);
        }
      }
    }
  }
}

absl::StatusOr<dataset::ManifestFile> DescribeFile(const std::string& dir,
                                                   const std::string& path) {
  std::ifstream in(dir + "/" + path, std::ios::binary);
  if (!in) return ErrnoError(errno, dir + "/" + path);
  hash::Sha256 sha;
  dataset::ManifestFile file;
  file.path = path;
  std::vector<char> buffer(1 << 20);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())),
         in.gcount() > 0) {
    sha.Update(hash::AsBytes(
        {buffer.data(), static_cast<std::size_t>(in.gcount())}));
    file.bytes += static_cast<std::uint64_t>(in.gcount());
  }
  file.sha256 = hash::Hex(sha.Finish());
  return file;
}

// Index, catalogue and manifest around the finished shards.
absl::StatusOr<std::string> WriteVersion(
    const std::string& dir, const format::CaptureIndexRows& rows,
    dataset::CatalogWriter& catalog, const Json& schema,
    const ImportReport& report, std::uint64_t shard_bytes) {
  PENSTOCK_RETURN_IF_ERROR(catalog.Finish());
  const auto index = format::EncodeCaptureIndex(rows);
  PENSTOCK_RETURN_IF_ERROR(format::CheckCaptureIndex(index));
  PENSTOCK_RETURN_IF_ERROR(WriteFileSynced(
      dir + "/" + dataset::kCaptureIndexFile,
      {reinterpret_cast<const char*>(index.data()), index.size()}));
  dataset::Manifest m;
  PENSTOCK_ASSIGN_OR_RETURN(m.schema, dataset::CanonicalJson(schema.dump()));
  std::vector<Digest256> digests;
  for (std::size_t i = 0; i < rows.shards.size(); ++i) {
    const std::string path = absl::StrFormat("shards/%05d.pshard", i);
    digests.push_back(rows.shards[i].sha256);
    m.shards.push_back(path);
    m.files.push_back(
        {path, rows.shards[i].bytes, hash::Hex(rows.shards[i].sha256)});
  }
  for (const char* name :
       {dataset::kCaptureIndexFile, dataset::kCatalogFile}) {
    PENSTOCK_ASSIGN_OR_RETURN(auto file, DescribeFile(dir, name));
    m.files.push_back(std::move(file));
  }
  m.id = hash::Hex(dataset::ComputeDatasetId(m.schema, catalog.CanonicalRows(),
                                             index, digests));
  Json sources = Json::array();
  for (const auto& c : report.captures) {
    sources.push_back({{"path", c.source}, {"capture", c.id}});
  }
  m.lineage = Json{{"parents", Json::array()},
                   {"tool", "penstock import"},
                   {"tool_version", PENSTOCK_VERSION},
                   {"parameters", {{"shard_bytes", shard_bytes}}},
                   {"sources", sources}}
                  .dump();
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, dataset::EncodeManifest(m));
  PENSTOCK_RETURN_IF_ERROR(
      WriteFileSynced(dir + "/" + dataset::kManifestFile, text));
  return m.id;
}

ImportedCapture Summarise(const IngestedCapture& c) {
  ImportedCapture s{Utf8(c.source.video),
                    hash::Hex(c.source.id),
                    c.source.mapping.title,
                    c.videos[0].frames.size(),
                    c.LostFrames(),
                    c.DamagedFrames(),
                    c.notes};
  for (const auto& v : c.videos) {
    s.notes.insert(s.notes.end(), v.notes.begin(), v.notes.end());
  }
  for (const auto& a : c.audios) {
    s.notes.insert(s.notes.end(), a.notes.begin(), a.notes.end());
  }
  return s;
}

// One error that lists every refused source.
absl::Status RefusedError(const ImportReport& report, std::size_t total) {
  std::string text;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  for (const auto& [source, status] : report.refused) {
    if (status.code() == absl::StatusCode::kAlreadyExists) continue;
    if (text.empty()) code = status.code();
    text += std::string(status.message()) + "\n";
  }
  return absl::Status(
      code, text + absl::StrFormat(
                       "nothing was imported (%d captures found); correct or "
                       "remove these sources, or give --skip-bad to leave "
                       "them out",
                       total));
}

bool StopsEverything(const absl::Status& status) {
  return status.code() == absl::StatusCode::kCancelled ||
         status.code() == absl::StatusCode::kResourceExhausted;
}

}  // namespace

bool ImportReport::HasLoss() const {
  for (const auto& c : captures) {
    if (c.lost_frames + c.damaged_frames > 0) return true;
  }
  for (const auto& [source, status] : refused) {
    if (status.code() != absl::StatusCode::kAlreadyExists) return true;
  }
  return false;
}

absl::StatusOr<ImportReport> Import(
    const ImportOptions& options, const std::atomic<bool>& cancel,
    const std::function<void(const ImportProgress&)>& progress) {
  ImportReport report;
  PENSTOCK_ASSIGN_OR_RETURN(auto sources,
                            PrepareSources(options.sources, report));
  const auto bad = [&report] {
    return std::any_of(report.refused.begin(), report.refused.end(),
                       [](const auto& r) {
                         return r.second.code() !=
                                absl::StatusCode::kAlreadyExists;
                       });
  };
  if (bad() && !options.skip_bad) {  // before anything is decoded
    return RefusedError(report, sources.size() + report.refused.size());
  }
  PENSTOCK_ASSIGN_OR_RETURN(auto staging, Staging::Create(options.out));
  ShardWriter shards(staging->dir() + "/shards", options.shard_bytes);
  PENSTOCK_ASSIGN_OR_RETURN(
      auto catalog, dataset::CatalogWriter::Create(staging->dir() + "/" +
                                                   dataset::kCatalogFile));
  Json schema = Json::object();
  std::size_t done = 0;
  const std::size_t total = sources.size();
  {
    IngestPool pool(sources, staging->dir(), std::max(options.jobs, 1), cancel,
                    [&](std::size_t i, const absl::Status& status) {
                      progress({++done, total, sources[i].video, status});
                    });
    for (std::size_t i = 0; i < total; ++i) {
      auto capture = pool.Take(i);
      if (!capture.ok()) {
        if (StopsEverything(capture.status())) return capture.status();
        report.refused.emplace_back(sources[i].video, capture.status());
        continue;
      }
      PENSTOCK_ASSIGN_OR_RETURN(const WrittenCapture written,
                                shards.Add(*capture));
      PENSTOCK_RETURN_IF_ERROR(
          AddToCatalog(*capture, written, shards.rows(), *catalog));
      MergeSchema(written, schema);
      report.captures.push_back(Summarise(*capture));
    }
  }
  if ((bad() && !options.skip_bad) || report.captures.empty()) {
    return RefusedError(report, total);
  }
  PENSTOCK_RETURN_IF_ERROR(shards.Finish());
  PENSTOCK_ASSIGN_OR_RETURN(
      report.dataset_id, WriteVersion(staging->dir(), shards.rows(), *catalog,
                                      schema, report, options.shard_bytes));
  for (const auto& s : shards.rows().shards) report.bytes += s.bytes;
  report.shards = shards.rows().shards.size();
  PENSTOCK_RETURN_IF_ERROR(staging->Publish());
  return report;
}

}  // namespace penstock::import
