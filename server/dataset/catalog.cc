#include "server/dataset/catalog.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/status/status.h"
#include "server/dataset/catalog_rows.h"
#include "server/dataset/manifest.h"
#include "server/dataset/sqlite.h"

namespace penstock::dataset {
namespace {

using Json = nlohmann::json;

constexpr char kSchema[] = R"sql(
PRAGMA page_size=4096;
PRAGMA journal_mode=MEMORY;
PRAGMA synchronous=FULL;
PRAGMA user_version=1;
BEGIN;
CREATE TABLE captures(
  ord INTEGER PRIMARY KEY, id TEXT NOT NULL, source TEXT NOT NULL,
  title TEXT NOT NULL, session TEXT NOT NULL, player TEXT NOT NULL,
  licence TEXT NOT NULL, duration_s REAL NOT NULL, frames INTEGER NOT NULL,
  width INTEGER NOT NULL, height INTEGER NOT NULL, fps REAL NOT NULL,
  damaged INTEGER NOT NULL);
CREATE TABLE conditions(
  capture INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY(capture, key)) WITHOUT ROWID;
CREATE TABLE tracks(
  ord INTEGER PRIMARY KEY, capture INTEGER NOT NULL, ordinal INTEGER NOT NULL,
  name TEXT NOT NULL, kind TEXT NOT NULL, codec TEXT NOT NULL,
  rows INTEGER NOT NULL, schema TEXT NOT NULL, details TEXT NOT NULL,
  UNIQUE(capture, ordinal), UNIQUE(capture, name));
CREATE TABLE spans(
  capture INTEGER NOT NULL, track INTEGER NOT NULL, kind TEXT NOT NULL,
  begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
  detector TEXT NOT NULL, version TEXT NOT NULL);
CREATE INDEX spans_of_capture ON spans(capture);
)sql";

// For filters that name one title, session or player of many. Made last, from
// all rows: in order, and the same rows give the same file.
constexpr char kIndexes[] = R"sql(
CREATE INDEX captures_by_title ON captures(title);
CREATE INDEX captures_by_session ON captures(session);
CREATE INDEX captures_by_player ON captures(player);
COMMIT;
)sql";

// A real number as 17 significant digits: enough to give the same double back.
std::string Real(double v) { return absl::StrFormat("%.17g", v); }

// `unlisted`: a text that is stored but is not in the id; checked all the same.
absl::StatusOr<std::string> Line(const Json& row,
                                 const std::string& unlisted = "") {
  try {
    Json(unlisted).dump();
    return row.dump() + "\n";
  } catch (const std::exception& e) {
    return absl::InvalidArgumentError(
        absl::StrCat("a text of the row is not UTF-8: ", e.what()));
  }
}

}  // namespace

absl::StatusOr<std::string> CanonicalRow(const CaptureRecord& r) {
  Json conditions = Json::array();
  for (const auto& [key, value] : r.conditions) {
    conditions.push_back({key, value});
  }
  return Line(
      Json::array({"capture", r.ord, hash::Hex(r.id), r.title, r.session,
                   r.player, r.licence, Real(r.duration_s), r.frames, r.width,
                   r.height, Real(r.fps), r.damaged, conditions}),
      r.source);
}

absl::StatusOr<std::string> CanonicalRow(const TrackRecord& r) {
  auto schema = CanonicalJson(r.schema), details = CanonicalJson(r.details);
  if (!schema.ok()) return Annotate(schema.status(), "schema of " + r.name);
  if (!details.ok()) return Annotate(details.status(), "details of " + r.name);
  return Line(Json::array({"track", r.ord, r.capture, r.ordinal, r.name, r.kind,
                           r.codec, r.rows, *schema, *details}));
}

absl::StatusOr<std::string> CanonicalRow(const SpanRecord& r) {
  return Line(
      Json::array({"span", r.capture, r.track, r.kind, r.begin_ns, r.end_ns}),
      r.detector + r.version);
}

std::string CanonicalText(std::string_view captures, std::string_view tracks,
                          std::vector<std::string> spans) {
  std::sort(spans.begin(), spans.end());
  std::string text;
  text.append(captures).append(tracks);
  for (const std::string& s : spans) text += s;
  return text;
}

struct CatalogWriter::Impl {
  std::string path;
  DbPtr db;
  std::optional<Statement> capture, condition, track, span;
  std::uint32_t captures = 0, tracks = 0;
  std::string capture_rows, track_rows;
  std::vector<std::string> span_rows;
  bool finished = false;

  absl::Status Prepare();
  absl::Status InsertCapture(const CaptureRecord& r);
};

absl::Status CatalogWriter::Impl::Prepare() {
  auto make = [&](std::optional<Statement>& out, const char* sql) {
    auto s = Statement::Prepare(db.get(), sql);
    if (s.ok()) out = *std::move(s);
    return s.status();
  };
  PENSTOCK_RETURN_IF_ERROR(
      make(capture, "INSERT INTO captures VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  PENSTOCK_RETURN_IF_ERROR(
      make(condition, "INSERT INTO conditions VALUES(?,?,?)"));
  PENSTOCK_RETURN_IF_ERROR(
      make(track, "INSERT INTO tracks VALUES(?,?,?,?,?,?,?,?,?)"));
  return make(span, "INSERT INTO spans VALUES(?,?,?,?,?,?,?)");
}

absl::Status CatalogWriter::Impl::InsertCapture(const CaptureRecord& r) {
  capture->Bind(std::int64_t{r.ord}).Bind(hash::Hex(r.id)).Bind(r.source);
  capture->Bind(r.title).Bind(r.session).Bind(r.player).Bind(r.licence);
  capture->Bind(r.duration_s).Bind(static_cast<std::int64_t>(r.frames));
  capture->Bind(std::int64_t{r.width}).Bind(std::int64_t{r.height});
  capture->Bind(r.fps).Bind(static_cast<std::int64_t>(r.damaged));
  return capture->Run();
}

CatalogWriter::CatalogWriter(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}

CatalogWriter::~CatalogWriter() {
  if (impl_ == nullptr || impl_->finished) return;
  const std::string path = impl_->path;
  impl_.reset();
  ::unlink(path.c_str());
}

absl::StatusOr<std::unique_ptr<CatalogWriter>> CatalogWriter::Create(
    const std::string& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) == 0) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, ": a catalogue is written once; remove it first"));
  }
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  PENSTOCK_ASSIGN_OR_RETURN(
      impl->db, OpenDb(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                 SQLITE_OPEN_NOMUTEX));
  auto writer =
      std::unique_ptr<CatalogWriter>(new CatalogWriter(std::move(impl)));
  PENSTOCK_RETURN_IF_ERROR(Execute(writer->impl_->db.get(), kSchema));
  PENSTOCK_RETURN_IF_ERROR(writer->impl_->Prepare());
  return writer;
}

absl::Status CatalogWriter::AddCapture(const CaptureRecord& record) {
  if (record.ord != impl_->captures) {
    return absl::InvalidArgumentError(absl::StrCat(
        "capture ", record.ord, " came when ", impl_->captures, " was next"));
  }
  CaptureRecord r = record;
  std::sort(r.conditions.begin(), r.conditions.end());
  PENSTOCK_ASSIGN_OR_RETURN(std::string row, CanonicalRow(r));
  PENSTOCK_RETURN_IF_ERROR(impl_->InsertCapture(r));
  for (std::size_t i = 0; i < r.conditions.size(); ++i) {
    const auto& [key, value] = r.conditions[i];
    if (i > 0 && key == r.conditions[i - 1].first) {
      return absl::InvalidArgumentError(absl::StrCat(
          "capture ", r.ord, " has the condition ", key, " twice"));
    }
    impl_->condition->Bind(std::int64_t{r.ord}).Bind(key).Bind(value);
    PENSTOCK_RETURN_IF_ERROR(impl_->condition->Run());
  }
  impl_->capture_rows += row;
  ++impl_->captures;
  return absl::OkStatus();
}

absl::Status CatalogWriter::AddTrack(const TrackRecord& r) {
  if (r.ord != impl_->tracks || r.capture >= impl_->captures) {
    return absl::InvalidArgumentError(absl::StrCat(
        "track ", r.ord, " of capture ", r.capture, " came when track ",
        impl_->tracks, " was next and there were ", impl_->captures,
        " captures"));
  }
  PENSTOCK_ASSIGN_OR_RETURN(std::string row, CanonicalRow(r));
  impl_->track->Bind(std::int64_t{r.ord}).Bind(std::int64_t{r.capture});
  impl_->track->Bind(std::int64_t{r.ordinal}).Bind(r.name).Bind(r.kind);
  impl_->track->Bind(r.codec).Bind(static_cast<std::int64_t>(r.rows));
  impl_->track->Bind(r.schema).Bind(r.details);
  if (auto s = impl_->track->Run(); !s.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "track ", r.name, " of capture ", r.capture, ": ", s.message()));
  }
  impl_->track_rows += row;
  ++impl_->tracks;
  return absl::OkStatus();
}

absl::Status CatalogWriter::AddSpan(const SpanRecord& r) {
  if (r.capture >= impl_->captures || r.track >= impl_->tracks ||
      r.begin_ns > r.end_ns) {
    return absl::InvalidArgumentError(
        absl::StrCat("span ", r.kind, " of capture ", r.capture, ", track ",
                     r.track, " [", r.begin_ns, ", ", r.end_ns,
                     "): no such track, or it ends before it "
                     "begins"));
  }
  PENSTOCK_ASSIGN_OR_RETURN(std::string row, CanonicalRow(r));
  impl_->span->Bind(std::int64_t{r.capture}).Bind(std::int64_t{r.track});
  impl_->span->Bind(r.kind).Bind(r.begin_ns).Bind(r.end_ns);
  impl_->span->Bind(r.detector).Bind(r.version);
  PENSTOCK_RETURN_IF_ERROR(impl_->span->Run());
  impl_->span_rows.push_back(std::move(row));
  return absl::OkStatus();
}

absl::Status CatalogWriter::Finish() {
  PENSTOCK_RETURN_IF_ERROR(Execute(impl_->db.get(), kIndexes));
  impl_->capture.reset();
  impl_->condition.reset();
  impl_->track.reset();
  impl_->span.reset();
  const int rc = sqlite3_close(impl_->db.release());
  if (rc != SQLITE_OK) return SqliteError(nullptr, rc, impl_->path);
  impl_->finished = true;
  return absl::OkStatus();
}

std::string CatalogWriter::CanonicalRows() const {
  return CanonicalText(impl_->capture_rows, impl_->track_rows,
                       impl_->span_rows);
}

}  // namespace penstock::dataset
