#ifndef PENSTOCK_LOADTEST_MEASURE_MAKE_DATASET_H_
#define PENSTOCK_LOADTEST_MEASURE_MAKE_DATASET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace penstock::loadtest {

// A dataset version without the bytes of its shards: planning opens none.
struct DatasetShape {
  std::uint32_t captures = 100'000;
  std::uint32_t frames = 1000;  // of a capture: one run, one GOP, one video track
  std::uint32_t shards = 10'000;
  std::uint32_t titles = 300;   // "t000", …: dealt to captures in turn
};

// Writes it into a new folder, byte for byte the same each time.
absl::Status MakeDataset(const std::string& dir, const DatasetShape& shape);

// A feed of one source a title, each with a filter on it. Returns its text.
std::string FeedOverTitles(const std::string& dataset, const DatasetShape& shape,
                           std::uint32_t global_batch);

}  // namespace penstock::loadtest

#endif  // PENSTOCK_LOADTEST_MEASURE_MAKE_DATASET_H_
