#ifndef PENSTOCK_SERVER_DECODE_GOP_FRAMES_H_
#define PENSTOCK_SERVER_DECODE_GOP_FRAMES_H_

#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/format/block.h"
#include "server/decode/video_decoder.h"

namespace penstock::decode {

// Decodes the blocks of consecutive GOPs (the first is an entry) and gives
// every presented frame with `frame` in [begin, end) to `sink`, in presentation
// order, with its row of the packet table.
//
// kDataLoss: a frame of the range does not come out, or its picture is not the
//            one hashed at import (named)
absl::Status DecodeFrames(
    VideoDecoder& decoder, std::span<const format::BlockView> blocks,
    std::uint32_t begin, std::uint32_t end,
    const std::function<void(const format::PacketRow&, const Picture&)>& sink);

}  // namespace penstock::decode

#endif  // PENSTOCK_SERVER_DECODE_GOP_FRAMES_H_
