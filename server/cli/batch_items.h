#ifndef PENSTOCK_SERVER_CLI_BATCH_ITEMS_H_
#define PENSTOCK_SERVER_CLI_BATCH_ITEMS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/types/ids.h"
#include "server/cli/batch_source.h"

namespace penstock::cli {

// A batch read back: what its samples hold, by the tensors alone.
struct BatchItems {
  std::vector<Digest128> digests;  // of the samples, in order
  std::uint64_t frames = 0;        // of video, without padding
};

// Finds the samples by `sample_frames` (buckets), `cu_frames` (packing) or their
// number, and digests their bytes where they lie.
//
// kDataLoss: what no sample fills is not zero
absl::StatusOr<BatchItems> ReadItems(const ConsumedBatch& batch);

// Frames of its samples' video.
std::uint64_t FramesOf(const ConsumedBatch& batch);

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_BATCH_ITEMS_H_
