#include "server/dataset/catalog_rows.h"

#include "absl/strings/str_cat.h"
#include "common/hash/hash.h"
#include "common/status/status.h"
#include "server/dataset/catalog.h"

namespace penstock::dataset {
namespace {

// Prepares `select`, with the condition and a bound value when there is one.
absl::StatusOr<Statement> Query(sqlite3* db, const char* select,
                                const char* column, const char* order,
                                std::optional<std::uint32_t> value) {
  std::string where = value ? absl::StrCat(" WHERE ", column, "=?") : "";
  PENSTOCK_ASSIGN_OR_RETURN(
      Statement s,
      Statement::Prepare(db, absl::StrCat(select, where, " ORDER BY ", order)));
  if (value) s.Bind(std::int64_t{*value});
  return s;
}

absl::Status ReadConditions(sqlite3* db, std::optional<std::uint32_t> ord,
                            std::vector<CaptureRecord>& captures) {
  PENSTOCK_ASSIGN_OR_RETURN(
      Statement s, Query(db, "SELECT capture,key,value FROM conditions",
                         "capture", "capture,key", ord));
  std::size_t at = 0;
  for (;;) {
    PENSTOCK_ASSIGN_OR_RETURN(bool row, s.Step());
    if (!row) return absl::OkStatus();
    const std::int64_t capture = s.Int(0);
    while (at < captures.size() && captures[at].ord < capture) ++at;
    if (at < captures.size() && captures[at].ord == capture) {
      captures[at].conditions.emplace_back(s.Text(1), s.Text(2));
    }
  }
}

CaptureRecord CaptureOf(const Statement& s) {
  CaptureRecord r;
  r.ord = static_cast<std::uint32_t>(s.Int(0));
  hash::ParseHex(s.Text(1), r.id);
  r.source = s.Text(2);
  r.title = s.Text(3);
  r.session = s.Text(4);
  r.player = s.Text(5);
  r.licence = s.Text(6);
  r.duration_s = s.Real(7);
  r.frames = static_cast<std::uint64_t>(s.Int(8));
  r.width = static_cast<std::uint32_t>(s.Int(9));
  r.height = static_cast<std::uint32_t>(s.Int(10));
  r.fps = s.Real(11);
  r.damaged = static_cast<std::uint64_t>(s.Int(12));
  return r;
}

}  // namespace

absl::StatusOr<std::vector<CaptureRecord>> ReadCaptures(
    sqlite3* db, std::optional<std::uint32_t> ord) {
  PENSTOCK_ASSIGN_OR_RETURN(
      Statement s,
      Query(db,
            "SELECT ord,id,source,title,session,player,licence,duration_s,"
            "frames,width,height,fps,damaged FROM captures",
            "ord", "ord", ord));
  std::vector<CaptureRecord> out;
  for (;;) {
    PENSTOCK_ASSIGN_OR_RETURN(bool row, s.Step());
    if (!row) break;
    out.push_back(CaptureOf(s));
  }
  PENSTOCK_RETURN_IF_ERROR(ReadConditions(db, ord, out));
  return out;
}

absl::StatusOr<std::vector<TrackRecord>> ReadTracks(
    sqlite3* db, std::optional<std::uint32_t> capture) {
  PENSTOCK_ASSIGN_OR_RETURN(
      Statement s, Query(db,
                         "SELECT ord,capture,ordinal,name,kind,codec,rows,"
                         "schema,details FROM tracks",
                         "capture", "ord", capture));
  std::vector<TrackRecord> out;
  for (;;) {
    PENSTOCK_ASSIGN_OR_RETURN(bool row, s.Step());
    if (!row) return out;
    out.push_back({.ord = static_cast<std::uint32_t>(s.Int(0)),
                   .capture = static_cast<std::uint32_t>(s.Int(1)),
                   .ordinal = static_cast<std::uint32_t>(s.Int(2)),
                   .name = s.Text(3),
                   .kind = s.Text(4),
                   .codec = s.Text(5),
                   .rows = static_cast<std::uint64_t>(s.Int(6)),
                   .schema = s.Text(7),
                   .details = s.Text(8)});
  }
}

absl::StatusOr<std::vector<SpanRecord>> ReadSpans(
    sqlite3* db, std::optional<std::uint32_t> capture) {
  PENSTOCK_ASSIGN_OR_RETURN(
      Statement s,
      Query(db,
            "SELECT capture,track,kind,begin_ns,end_ns,detector,version "
            "FROM spans",
            "capture", "capture,track,begin_ns,end_ns,kind", capture));
  std::vector<SpanRecord> out;
  for (;;) {
    PENSTOCK_ASSIGN_OR_RETURN(bool row, s.Step());
    if (!row) return out;
    out.push_back({.capture = static_cast<std::uint32_t>(s.Int(0)),
                   .track = static_cast<std::uint32_t>(s.Int(1)),
                   .kind = s.Text(2),
                   .begin_ns = s.Int(3),
                   .end_ns = s.Int(4),
                   .detector = s.Text(5),
                   .version = s.Text(6)});
  }
}

absl::StatusOr<std::string> ReadCanonicalRows(const std::string& path) {
  PENSTOCK_ASSIGN_OR_RETURN(DbPtr db, OpenCatalogDb(path));
  PENSTOCK_ASSIGN_OR_RETURN(auto captures, ReadCaptures(db.get(), {}));
  PENSTOCK_ASSIGN_OR_RETURN(auto tracks, ReadTracks(db.get(), {}));
  PENSTOCK_ASSIGN_OR_RETURN(auto spans, ReadSpans(db.get(), {}));
  std::string capture_text, track_text;
  std::vector<std::string> span_text;
  for (const auto& r : captures) {
    PENSTOCK_ASSIGN_OR_RETURN(std::string line, CanonicalRow(r));
    capture_text += line;
  }
  for (const auto& r : tracks) {
    PENSTOCK_ASSIGN_OR_RETURN(std::string line, CanonicalRow(r));
    track_text += line;
  }
  for (const auto& r : spans) {
    PENSTOCK_ASSIGN_OR_RETURN(span_text.emplace_back(), CanonicalRow(r));
  }
  return CanonicalText(capture_text, track_text, std::move(span_text));
}

}  // namespace penstock::dataset
