#ifndef PENSTOCK_SERVER_IMPORT_CAPTURE_READER_H_
#define PENSTOCK_SERVER_IMPORT_CAPTURE_READER_H_

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/input_bins.h"
#include "server/dataset/dataset.h"
#include "server/dataset/shard_reader.h"
#include "server/decode/gop_frames.h"

namespace penstock::import {

// A track of a capture as a reader sees it.
struct ReadTrack {
  format::TrackRow row{};
  std::string name, codec;
  std::string schema = "{}", details = "{}";
  std::span<const format::GopRow> gops;
  std::span<const format::SegmentRow> segments;
};

// The inputs of one frame interval with readable codes.
struct FrameInputs {
  std::string held;  // codes held or pressed in the interval, space separated
  std::int64_t dx = 0, dy = 0;
  std::uint32_t events = 0;
};

// Reads one capture of a dataset, or of a shard alone (B-16), for people: frames
// decoded one after the other, events, tables.
//
// Threading: one thread. Ownership: borrows the dataset or the shard.
class CaptureReader {
 public:
  static absl::StatusOr<std::unique_ptr<CaptureReader>> OfDataset(
      const dataset::Dataset& dataset, std::uint32_t capture);
  static absl::StatusOr<std::unique_ptr<CaptureReader>> OfShard(
      const dataset::ShardReader& shard, std::uint32_t capture);

  const std::vector<ReadTrack>& tracks() const { return tracks_; }
  // The first video track, or null.
  const ReadTrack* video() const;

  // Frames [begin, end) of a video track, in presentation order.
  //
  // kOutOfRange: not frames of the track; kDataLoss: as DecodeFrames
  absl::Status ForEachFrame(
      const ReadTrack& track, std::uint64_t begin, std::uint64_t end,
      const std::function<void(const format::PacketRow&,
                               const decode::Picture&)>& sink);

  // ns of the frames [begin, end) on the capture's clock, and of the end of the
  // last: end - begin + 1 boundaries. Reads packet tables, decodes nothing.
  absl::StatusOr<std::vector<std::int64_t>> FrameTimes(const ReadTrack& track,
                                                       std::uint64_t begin,
                                                       std::uint64_t end);

  // The inputs of all events tracks between the boundaries.
  absl::StatusOr<std::vector<FrameInputs>> Inputs(
      std::span<const std::int64_t> boundaries);

 private:
  absl::StatusOr<const dataset::ShardReader*> Shard(std::uint32_t shard);
  struct Loaded {
    std::vector<std::uint8_t> bytes;
    std::vector<format::BlockView> blocks;
  };
  absl::StatusOr<Loaded> Load(std::uint32_t shard, std::uint64_t offset,
                              std::uint64_t bytes);

  std::vector<ReadTrack> tracks_;
  const dataset::Dataset* dataset_ = nullptr;
  const dataset::ShardReader* alone_ = nullptr;
  std::map<std::uint32_t, std::unique_ptr<dataset::ShardReader>> shards_;
};

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_CAPTURE_READER_H_
