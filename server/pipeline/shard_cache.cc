#include "server/pipeline/shard_cache.h"

#include "common/status/status.h"
#include "server/dataset/shard_reader.h"

namespace penstock::pipeline {

absl::StatusOr<std::shared_ptr<const OpenShard>> ShardCache::Get(
    const dataset::Dataset& dataset, std::uint32_t shard) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string path, dataset.ShardPath(shard));
  // The id too: a folder may hold another version by the next job.
  const std::string key = dataset.id() + path;
  std::lock_guard lock(mutex_);
  if (auto it = open_.find(key); it != open_.end()) {
    recent_.splice(recent_.begin(), recent_, it->second.first);
    return it->second.second;
  }
  PENSTOCK_ASSIGN_OR_RETURN(auto reader, dataset::ShardReader::Open(path));
  auto shard_open = std::make_shared<OpenShard>();
  shard_open->codecs = reader->footer().codecs;
  PENSTOCK_ASSIGN_OR_RETURN(shard_open->file, io::ReadFile::Open(path));
  recent_.push_front(key);
  open_[key] = {recent_.begin(), shard_open};
  while (open_.size() > open_max_) {
    open_.erase(recent_.back());
    recent_.pop_back();
  }
  return std::shared_ptr<const OpenShard>(std::move(shard_open));
}

}  // namespace penstock::pipeline
