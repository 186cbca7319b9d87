#ifndef PENSTOCK_SERVER_CLI_BATCH_ITEMS_H_
#define PENSTOCK_SERVER_CLI_BATCH_ITEMS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/types/ids.h"
#include "server/cli/batch_source.h"

namespace penstock::cli {

// Digests of the samples of a batch that is read back, in order. They are found by
// `sample_frames` (buckets), `cu_frames` (packing) or their number.
//
// kDataLoss: what no sample fills is not zero
absl::StatusOr<std::vector<Digest128>> DigestItems(const ConsumedBatch& batch);

// Frames of its samples' video, without padding.
std::uint64_t FramesOf(const ConsumedBatch& batch);

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_BATCH_ITEMS_H_
