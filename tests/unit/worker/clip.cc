#include "tests/unit/worker/clip.h"

#include <stdexcept>

#include "server/decode/video_decoder.h"
#include "server/demux/demuxer.h"

namespace penstock::test {
namespace {

template <typename T>
T Value(absl::StatusOr<T> v) {
  if (!v.ok()) throw std::runtime_error(v.status().ToString());
  return *std::move(v);
}

// Frame numbers and hashes by linear decode.
void NumberFrames(Clip& clip, const std::vector<std::vector<std::uint8_t>>& packets,
                  const ClipOptions& options) {
  auto decoder = Value(decode::VideoDecoder::Create(clip.codec));
  const auto take = [&](const decode::Picture& p) {
    auto& row = clip.rows.at(p.packet);
    row.frame = clip.frame_count++;
    if (options.hashes) row.hash = decode::HashPicture(p);
    if (row.frame == options.spoil_frame) row.hash ^= 1;
  };
  for (std::uint32_t i = 0; i < packets.size(); ++i) {
    if (auto s = decoder->Decode(i, packets[i], take); !s.ok()) {
      throw std::runtime_error(s.ToString());
    }
  }
  (void)decoder->Drain(take);
}

}  // namespace

Clip LoadClip(const std::string& path, const ClipOptions& options) {
  auto demuxer = Value(demux::Demuxer::Open(path));
  int video = -1;
  for (std::size_t i = 0; i < demuxer->streams().size(); ++i) {
    if (demuxer->streams()[i].kind == demux::StreamKind::kVideo && video < 0) {
      video = static_cast<int>(i);
    }
  }
  if (video < 0) throw std::runtime_error(path + ": no video");
  Clip clip;
  clip.codec = demuxer->streams()[video].codec;
  std::vector<std::vector<std::uint8_t>> packets;
  demux::Packet packet;
  while (packets.size() < options.packets_max && Value(demuxer->Next(packet))) {
    if (packet.stream != video) continue;
    packets.emplace_back(packet.data.begin(), packet.data.end());
    clip.rows.push_back({.pts = packet.pts, .dts = packet.dts,
                         .duration = packet.duration,
                         .frame = format::kNoFrame});
  }
  NumberFrames(clip, packets, options);

  for (std::size_t first = 0; first < packets.size();
       first += options.packets_per_block) {
    std::vector<format::PacketRow> table;
    std::vector<std::uint8_t> payload;
    for (std::size_t i = first;
         i < std::min(packets.size(), first + options.packets_per_block); ++i) {
      clip.rows[i].offset = static_cast<std::uint32_t>(payload.size());
      clip.rows[i].bytes = static_cast<std::uint32_t>(packets[i].size());
      payload.insert(payload.end(), packets[i].begin(), packets[i].end());
      table.push_back(clip.rows[i]);
    }
    const auto block =
        format::EncodeBlock({.kind = format::TrackKind::kVideo},
                            format::TableBytes(table),
                            static_cast<std::uint32_t>(table.size()), payload);
    clip.blocks.push_back({clip.input.size(), block.size()});
    clip.input.insert(clip.input.end(), block.begin(), block.end());
  }
  return clip;
}

layout::VideoTransform SmallRgb(const Clip& clip) {
  return {.src_width = clip.codec.width, .src_height = clip.codec.height,
          .width = 64, .height = 36};
}

shm::DecodeJob JobFor(const Clip& clip, const std::vector<std::uint32_t>& frames,
                      std::vector<layout::VideoTransform> transforms,
                      std::uint64_t at) {
  shm::DecodeJob job;
  job.codec = clip.codec;
  job.blocks = clip.blocks;
  job.transforms = std::move(transforms);
  for (const std::uint32_t frame : frames) {
    for (std::uint32_t t = 0; t < job.transforms.size(); ++t) {
      job.targets.push_back({frame, t, at, 0});
      at += layout::FrameBytes(job.transforms[t]);
    }
  }
  return job;
}

std::uint64_t TargetBytes(const shm::DecodeJob& job) {
  std::uint64_t bytes = 0;
  for (const auto& t : job.targets) {
    bytes += layout::FrameBytes(job.transforms[t.transform]);
  }
  return bytes;
}

}  // namespace penstock::test
