#ifndef PENSTOCK_SERVER_DECODE_FFMPEG_HANDLES_H_
#define PENSTOCK_SERVER_DECODE_FFMPEG_HANDLES_H_

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/error.h>
#include <libavutil/frame.h>
}

#include <memory>
#include <string>

namespace penstock::decode {

template <auto Free>
struct FreeWith {  // for C calls that take T** and null it
  template <typename T>
  void operator()(T* p) const noexcept {
    Free(&p);
  }
};
using FramePtr = std::unique_ptr<AVFrame, FreeWith<av_frame_free>>;
using PacketPtr = std::unique_ptr<AVPacket, FreeWith<av_packet_free>>;
using ContextPtr =
    std::unique_ptr<AVCodecContext, FreeWith<avcodec_free_context>>;
using ParametersPtr =
    std::unique_ptr<AVCodecParameters, FreeWith<avcodec_parameters_free>>;

inline std::string AvErrorText(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, text, sizeof(text));
  return text;
}

}  // namespace penstock::decode

#endif  // PENSTOCK_SERVER_DECODE_FFMPEG_HANDLES_H_
