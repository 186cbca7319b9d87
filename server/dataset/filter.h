#ifndef PENSTOCK_SERVER_DATASET_FILTER_H_
#define PENSTOCK_SERVER_DATASET_FILTER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/dataset/sqlite.h"

// SQL predicates of feeds over a catalogue. Private to server/dataset.
namespace penstock::dataset {

inline constexpr std::size_t kFilterBytesMax = 64u << 10;

// The ordinals whose row satisfies `filter`, ascending. The connection's
// authorizer and progress handler are set for the call and removed after it.
//
// kInvalidArgument:   see Dataset::Select
// kResourceExhausted: see Dataset::Select
absl::StatusOr<std::vector<std::uint32_t>> SelectCaptures(
    sqlite3* db, std::string_view filter, std::uint64_t capture_count);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_FILTER_H_
