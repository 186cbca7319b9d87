#ifndef PENSTOCK_SERVER_DATASET_LABELS_H_
#define PENSTOCK_SERVER_DATASET_LABELS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/dataset/sqlite.h"

// Strata of captures. Private to server/dataset.
namespace penstock::dataset {

// A text of every capture, each distinct value once.
struct TextColumn {
  std::vector<std::string> values;
  std::vector<std::uint32_t> codes;  // row in `values`, by capture

  const std::string& Of(std::uint32_t capture) const {
    return values[codes[capture]];
  }
};

// The column `name` (title, session, player, fps, resolution as WxH,
// condition.KEY) of all captures in one pass; a condition that a capture does
// not have is empty.
absl::StatusOr<TextColumn> ReadColumn(sqlite3* db, const std::string& name,
                                      std::uint64_t capture_count);

// The same of some captures, a query for each.
absl::StatusOr<std::vector<std::string>> ReadValues(
    sqlite3* db, const std::string& name,
    std::span<const std::uint32_t> captures);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_LABELS_H_
