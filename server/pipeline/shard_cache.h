#ifndef PENSTOCK_SERVER_PIPELINE_SHARD_CACHE_H_
#define PENSTOCK_SERVER_PIPELINE_SHARD_CACHE_H_

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/shard.h"
#include "server/dataset/dataset.h"
#include "server/io/read_engine.h"

namespace penstock::pipeline {

// A shard as the pipeline reads it: the file for the read engine, and the codec
// parameters of its footer.
struct OpenShard {
  std::shared_ptr<io::ReadFile> file;
  std::vector<format::CodecParameters> codecs;
};

// Open shards of all jobs, least recently used closed first.
//
// Threading: any thread; opening reads the footer and blocks.
// Bounds: `open_max` descriptors beside those in use.
class ShardCache {
 public:
  explicit ShardCache(std::size_t open_max = 512) : open_max_(open_max) {}

  // As dataset::ShardReader::Open.
  absl::StatusOr<std::shared_ptr<const OpenShard>> Get(
      const dataset::Dataset& dataset, std::uint32_t shard);

 private:
  const std::size_t open_max_;
  std::mutex mutex_;
  std::list<std::string> recent_;  // newest first
  std::map<std::string, std::pair<std::list<std::string>::iterator,
                                  std::shared_ptr<const OpenShard>>>
      open_;
};

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_SHARD_CACHE_H_
