#ifndef PENSTOCK_SERVER_CLI_BATCH_SOURCE_H_
#define PENSTOCK_SERVER_CLI_BATCH_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/tensor.h"
#include "common/types/ids.h"

namespace penstock::cli {

// Where `penstock feed` takes batches from.
struct FeedOptions {
  std::string feed, address, job, incarnation, resume = "new";
  std::uint32_t rank = 0, world = 1, ranks_per_node = 0;
  std::string speeds;
  std::uint64_t deadline_ms = 120'000;
  bool takeover = false;
  // Local mode.
  std::uint32_t workers = 0;
  std::uint64_t arena_bytes = 0;
};

// The tensors of a batch that have one shape: all of it, or with buckets one
// microbatch. Rows are units; with buckets samples.
struct BatchPart {
  std::string bucket;
  std::vector<layout::TensorDesc> tensors;  // offsets from the slab's begin
};

// A batch as the consumer sees it. `bytes` is the slab, read where it lies.
struct ConsumedBatch {
  std::uint64_t step = 0;
  std::span<const std::uint8_t> bytes;
  std::vector<BatchPart> parts;
  std::vector<std::string> sample_ids, item_digests;  // hex, as described
  std::uint64_t units = 0, global_samples = 0;
  std::uint64_t tokens = 0, global_tokens = 0;
  double loss_scale = 1;
  std::string batch_digest, global_digest;            // hex
  std::uint64_t wait_ns = 0;
  std::shared_ptr<const void> keep;  // the slot goes back with it
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual std::string Describe() const = 0;  // one line: generation, notes
  // Empty at the end of the data.
  virtual absl::StatusOr<std::optional<ConsumedBatch>> Next() = 0;
  virtual std::string StateDict() const = 0;
};

// Through the client library, as a trainer does.
absl::StatusOr<std::unique_ptr<BatchSource>> ConnectSource(
    const FeedOptions& options);
// Without a daemon: the same pipeline in this process, for one rank.
absl::StatusOr<std::unique_ptr<BatchSource>> LocalSource(
    const FeedOptions& options);

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_BATCH_SOURCE_H_
