#ifndef PENSTOCK_SERVER_IMPORT_VIDEO_INGEST_H_
#define PENSTOCK_SERVER_IMPORT_VIDEO_INGEST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/block.h"
#include "server/decode/video_decoder.h"
#include "server/demux/demuxer.h"
#include "server/import/spool.h"

namespace penstock::import {

// A presented frame, in presentation order.
struct FrameInfo {
  std::uint32_t packet = 0;
  std::int64_t pts = 0;       // in the time base, strictly increasing
  std::int64_t duration = 0;  // to the next frame
  bool damaged = false;
};

// A GOP as ranges of packets (decode order) and frames (presentation order).
struct GopPlan {
  std::uint32_t first_packet = 0, end_packet = 0;
  std::uint32_t first_frame = 0, frame_count = 0;
  std::uint32_t lead_count = 0, preroll = 0;
};

// A hole in the frames: what was lost or left out, in the time base.
struct Hole {
  std::int64_t begin_pts = 0, end_pts = 0;
  bool lost = false;  // frames were lost; else a pause of the recorder
};

// What import knows of one video track.
struct IngestedVideo {
  demux::Stream stream;
  std::vector<format::PacketRow> packets;   // offset unused; decode order
  std::vector<std::uint64_t> spool_offset;  // of each packet
  std::vector<FrameInfo> frames;
  std::vector<GopPlan> gops;
  std::vector<Hole> holes;
  std::uint64_t lost_frames = 0, damaged_frames = 0;
  std::uint64_t duplicate_frames = 0, black_frames = 0;
  bool synthetic_pts = false, constant_rate = false;
  std::uint8_t bit_depth = 8;
  std::vector<std::string> notes;  // what a person should know
};

// Reads a video track once in decode order: every picture is decoded and
// hashed, times are completed, then every possible entry is verified by
// decoding from it (DESIGN §2).
//
// Threading: one thread. Ownership: borrows `spool`.
// Bounds: 64 bytes a packet in memory, the packets in the spool.
class VideoIngest {
 public:
  // kUnimplemented, kInvalidArgument: as VideoDecoder::Create
  static absl::StatusOr<std::unique_ptr<VideoIngest>> Create(
      const demux::Stream& stream, Spool& spool, std::string where);

  // kInvalidArgument: the picture changes its size or format, new parameter
  //                   sets in mid-stream, a packet above the block limit
  absl::Status Add(const demux::Packet& packet);

  // kInvalidArgument: no picture came out
  absl::StatusOr<IngestedVideo> Finish(
      const std::vector<std::string>& complaints);

 private:
  VideoIngest(std::unique_ptr<decode::VideoDecoder> decoder, Spool& spool,
              std::string where)
      : decoder_(std::move(decoder)), spool_(spool), where_(std::move(where)) {}

  void OnPicture(const decode::Picture& picture);
  absl::Status CheckPicture() const { return picture_status_; }

  std::unique_ptr<decode::VideoDecoder> decoder_;
  Spool& spool_;
  std::string where_;
  IngestedVideo out_;
  std::vector<bool> picture_key_;   // by packet: its picture is a key picture
  std::vector<bool> packet_bad_;    // by packet: refused, corrupt or concealed
  std::uint64_t last_hash_ = 0;
  std::string pixel_format_;
  absl::Status picture_status_;
};

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_VIDEO_INGEST_H_
