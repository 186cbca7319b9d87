#include "server/import/entries.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace penstock::import {
namespace {

using format::kNoFrame;

constexpr std::uint64_t kGopBytesMax = 1ull << 30;

class EntrySplitter {
 public:
  EntrySplitter(std::span<const std::uint8_t> spool, IngestedVideo& video)
      : spool_(spool), v_(video) {}

  absl::Status Init() {
    PENSTOCK_ASSIGN_OR_RETURN(decoder_,
                              decode::VideoDecoder::Create(v_.stream.codec));
    return absl::OkStatus();
  }

  absl::Status Split(std::vector<std::uint32_t> candidates) {
    const auto packets = static_cast<std::uint32_t>(v_.packets.size());
    // Each pass keeps or drops entries; it ends because it only ever drops.
    std::vector<std::uint32_t> entries = std::move(candidates);
    std::vector<bool> verified(entries.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (verified[i]) continue;
        const std::uint32_t end = EndOf(entries, i, packets);
        bool good = i == 0;
        if (!good) {
          PENSTOCK_ASSIGN_OR_RETURN(good, Verify(entries[i], entries[i], end,
                                                 EntryFrame(entries[i], end),
                                                 kNoFrame));
          good = good && Tiles(entries, i, end);
        }
        verified[i] = good;
        if (good) continue;
        entries.erase(entries.begin() + i);
        verified.erase(verified.begin() + i);
        verified[i - 1] = i == 1;  // it grew: verify it again
        changed = true;
        break;
      }
    }
    return MakeGops(entries, packets);
  }

 private:
  static std::uint32_t EndOf(const std::vector<std::uint32_t>& entries,
                             std::size_t i, std::uint32_t packets) {
    return i + 1 < entries.size() ? entries[i + 1] : packets;
  }

  // The first frame (presentation index) that the entry at `s` promises.
  std::uint32_t EntryFrame(std::uint32_t s, std::uint32_t end) const {
    if (v_.packets[s].frame != kNoFrame) return v_.packets[s].frame;
    std::uint32_t first = kNoFrame;
    for (std::uint32_t p = s; p < end; ++p) {
      const auto& row = v_.packets[p];
      if (row.frame != kNoFrame && row.pts != format::kNoPts &&
          row.pts >= v_.packets[s].pts) {
        first = std::min(first, row.frame);
      }
    }
    return first;
  }

  struct Frames {
    std::uint32_t first = kNoFrame, last = 0, count = 0;
  };
  Frames FramesOf(std::uint32_t s, std::uint32_t end) const {
    Frames f;
    for (std::uint32_t p = s; p < end; ++p) {
      const std::uint32_t frame = v_.packets[p].frame;
      if (frame == kNoFrame) continue;
      f.first = std::min(f.first, frame);
      f.last = std::max(f.last, frame);
      ++f.count;
    }
    return f;
  }

  // The frames of [entries[i], end) are one range that starts after all frames
  // before it.
  bool Tiles(const std::vector<std::uint32_t>& entries, std::size_t i,
             std::uint32_t end) const {
    const Frames f = FramesOf(entries[i], end);
    if (f.count == 0 || f.last - f.first + 1 != f.count) return false;
    const Frames before = FramesOf(entries[i - 1], entries[i]);
    return before.count > 0 && before.last + 1 == f.first;
  }

  std::span<const std::uint8_t> PacketBytes(std::uint32_t p) const {
    return spool_.subspan(v_.spool_offset[p], v_.packets[p].bytes);
  }

  // Decodes [from, end) from scratch; true when every frame of the packets
  // [check, end) with first <= frame < limit has its linear picture.
  absl::StatusOr<bool> Verify(std::uint32_t from, std::uint32_t check,
                              std::uint32_t end, std::uint32_t first,
                              std::uint32_t limit) {
    std::uint32_t expected = 0;
    for (std::uint32_t p = check; p < end; ++p) {
      const auto& row = v_.packets[p];
      expected += row.frame != kNoFrame && row.frame >= first &&
                  row.frame < limit && row.hash != 0;
    }
    std::uint32_t equal = 0;
    bool differs = false;
    auto sink = [&](const decode::Picture& picture) {
      const auto& row = v_.packets[picture.packet];
      if (picture.packet < check || row.frame == kNoFrame ||
          row.frame < first || row.frame >= limit || row.hash == 0) {
        return;
      }
      (decode::HashPicture(picture) == row.hash ? void(++equal)
                                                : void(differs = true));
    };
    decoder_->Reset();
    for (std::uint32_t p = from; p < end && !differs; ++p) {
      PENSTOCK_RETURN_IF_ERROR(decoder_->Decode(p, PacketBytes(p), sink));
    }
    PENSTOCK_RETURN_IF_ERROR(decoder_->Drain(sink));
    decoder_->Reset();
    return !differs && equal == expected;
  }

  // How many GOPs before `i` the lead frames need.
  absl::StatusOr<std::uint32_t> Preroll(std::size_t i, std::uint32_t first) {
    const GopPlan& g = v_.gops[i];
    for (std::uint32_t k = 1; k < i; ++k) {
      PENSTOCK_ASSIGN_OR_RETURN(
          const bool good,
          Verify(v_.gops[i - k].first_packet, g.first_packet, g.end_packet,
                 g.first_frame, first));
      if (good) return k;
    }
    return static_cast<std::uint32_t>(i);  // from the start: the linear decode
  }

  absl::Status MakeGops(const std::vector<std::uint32_t>& entries,
                        std::uint32_t packets) {
    std::uint32_t next_frame = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      GopPlan g;
      g.first_packet = entries[i];
      g.end_packet = EndOf(entries, i, packets);
      const Frames f = FramesOf(g.first_packet, g.end_packet);
      g.first_frame = next_frame;
      g.frame_count = f.count;
      next_frame += f.count;
      std::uint64_t bytes = 0;
      for (std::uint32_t p = g.first_packet; p < g.end_packet; ++p) {
        bytes += v_.packets[p].bytes;
      }
      if (bytes > kGopBytesMax) {
        return MakeError(
            absl::StatusCode::kInvalidArgument,
            {.where = absl::StrFormat("GOP %d", i),
             .what = "too many bytes from one entry to the next",
             .found = absl::StrFormat("%d", bytes),
             .expected = absl::StrFormat("at most %d", kGopBytesMax),
             .action = "re-encode the capture with more keyframes"});
      }
      v_.packets[g.first_packet].flags |= format::kPacketEntry;
      v_.gops.push_back(g);
      const std::uint32_t entry = EntryFrame(g.first_packet, g.end_packet);
      if (i > 0 && entry != kNoFrame && entry > g.first_frame) {
        v_.gops[i].lead_count = entry - g.first_frame;
        PENSTOCK_ASSIGN_OR_RETURN(v_.gops[i].preroll, Preroll(i, entry));
      }
    }
    return absl::OkStatus();
  }

  std::span<const std::uint8_t> spool_;
  IngestedVideo& v_;
  std::unique_ptr<decode::VideoDecoder> decoder_;
};

}  // namespace

absl::Status SplitIntoGops(std::span<const std::uint8_t> spool,
                           std::vector<std::uint32_t> candidates,
                           IngestedVideo& video) {
  EntrySplitter splitter(spool, video);
  PENSTOCK_RETURN_IF_ERROR(splitter.Init());
  return splitter.Split(std::move(candidates));
}

}  // namespace penstock::import
