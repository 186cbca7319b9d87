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

// Of each capture the values of the columns `by` (title, session, player, fps,
// resolution as WxH, condition.KEY), joined by "|"; a condition that a capture
// does not have is empty.
absl::StatusOr<std::vector<std::string>> ReadLabels(
    sqlite3* db, std::span<const std::uint32_t> captures,
    std::span<const std::string> by);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_LABELS_H_
