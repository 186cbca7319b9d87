#ifndef PENSTOCK_SERVER_DATASET_CATALOG_ROWS_H_
#define PENSTOCK_SERVER_DATASET_CATALOG_ROWS_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/dataset/records.h"
#include "server/dataset/sqlite.h"

// Rows of the catalogue to canonical text, and back from SQLite. Private to
// server/dataset.
namespace penstock::dataset {

// One line (compact JSON array and a line feed). Conditions must be sorted.
//
// kInvalidArgument: a text is not UTF-8, a JSON text does not parse
absl::StatusOr<std::string> CanonicalRow(const CaptureRecord& r);
absl::StatusOr<std::string> CanonicalRow(const TrackRecord& r);
absl::StatusOr<std::string> CanonicalRow(const SpanRecord& r);

// Captures and tracks by ordinal, then spans sorted as texts.
std::string CanonicalText(std::string_view captures, std::string_view tracks,
                          std::vector<std::string> spans);

// The rows that match, in canonical order; all without a capture or ordinal.
absl::StatusOr<std::vector<CaptureRecord>> ReadCaptures(
    sqlite3* db, std::optional<std::uint32_t> ord);
absl::StatusOr<std::vector<TrackRecord>> ReadTracks(
    sqlite3* db, std::optional<std::uint32_t> capture);
absl::StatusOr<std::vector<SpanRecord>> ReadSpans(
    sqlite3* db, std::optional<std::uint32_t> capture);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_CATALOG_ROWS_H_
