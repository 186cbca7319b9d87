#ifndef PENSTOCK_TESTS_UNIT_WORKER_CLIP_H_
#define PENSTOCK_TESTS_UNIT_WORKER_CLIP_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/format/block.h"
#include "common/format/shard.h"
#include "common/shm/worker_protocol.h"

namespace penstock::test {

// The first packets of a real capture as blocks, with what a linear decode says
// about its frames.
struct Clip {
  format::CodecParameters codec;
  std::vector<std::uint8_t> input;       // blocks, at aligned offsets
  std::vector<shm::BlockRange> blocks;
  std::vector<format::PacketRow> rows;   // of all blocks
  std::uint32_t frame_count = 0;         // numbered from 0, as presented
};

struct ClipOptions {
  std::uint32_t packets_max = 90;
  std::uint32_t packets_per_block = 16;
  bool hashes = true;            // in the packet tables
  std::uint32_t spoil_frame = 0xFFFFFFFF;  // its hash is wrong
};

// Throws std::runtime_error when the file cannot be read.
Clip LoadClip(const std::string& path, const ClipOptions& options = {});

// A transform for the clip's frames.
layout::VideoTransform SmallRgb(const Clip& clip);

// A job for `frames` with `count` transforms, destinations back to back from
// `at` on.
shm::DecodeJob JobFor(const Clip& clip, const std::vector<std::uint32_t>& frames,
                      std::vector<layout::VideoTransform> transforms,
                      std::uint64_t at = 0);

// Bytes that the targets of a job take.
std::uint64_t TargetBytes(const shm::DecodeJob& job);

}  // namespace penstock::test

#endif  // PENSTOCK_TESTS_UNIT_WORKER_CLIP_H_
