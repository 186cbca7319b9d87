#include "server/decode/gop_frames.h"

#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace penstock::decode {

absl::Status DecodeFrames(
    VideoDecoder& decoder, std::span<const format::BlockView> blocks,
    std::uint32_t begin, std::uint32_t end,
    const std::function<void(const format::PacketRow&, const Picture&)>& sink) {
  std::vector<format::PacketRow> rows;
  std::vector<std::span<const std::uint8_t>> packets;
  for (const auto& block : blocks) {
    for (const auto& row : block.Packets()) {
      rows.push_back(row);
      packets.push_back(block.payload.subspan(row.offset, row.bytes));
    }
  }
  std::uint32_t wanted = 0, seen = 0;
  for (const auto& row : rows) {
    wanted += row.frame != format::kNoFrame && row.frame >= begin &&
              row.frame < end;
  }
  absl::Status status;
  auto take = [&](const Picture& picture) {
    if (picture.packet >= rows.size()) return;
    const auto& row = rows[picture.packet];
    if (row.frame == format::kNoFrame || row.frame < begin || row.frame >= end) {
      return;
    }
    if (row.hash != 0 && HashPicture(picture) != row.hash) {
      status.Update(
          MakeError(absl::StatusCode::kDataLoss,
                    {.where = absl::StrFormat("frame %d", row.frame),
                     .what = "the picture is not the one hashed at import",
                     .found = "another hash",
                     .expected = "the hash in the packet table",
                     .action = "run `penstock verify` on the dataset"}));
      return;
    }
    ++seen;
    sink(row, picture);
  };
  decoder.Reset();
  for (std::uint32_t p = 0; p < packets.size() && seen < wanted; ++p) {
    PENSTOCK_RETURN_IF_ERROR(decoder.Decode(p, packets[p], take));
    PENSTOCK_RETURN_IF_ERROR(status);
  }
  if (seen < wanted) {
    PENSTOCK_RETURN_IF_ERROR(decoder.Drain(take));
    PENSTOCK_RETURN_IF_ERROR(status);
  }
  decoder.Reset();
  if (seen < wanted) {
    return MakeError(absl::StatusCode::kDataLoss,
                     {.where = absl::StrFormat("frames %d to %d", begin, end),
                      .what = "the decoder gave fewer frames than the table has",
                      .found = absl::StrFormat("%d", seen),
                      .expected = absl::StrFormat("%d", wanted),
                      .action = "run `penstock verify` on the dataset"});
  }
  return absl::OkStatus();
}

}  // namespace penstock::decode
