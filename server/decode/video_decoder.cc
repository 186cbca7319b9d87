#include "server/decode/video_decoder.h"

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/status/status.h"
#include "server/decode/av_log.h"
#include "server/decode/ffmpeg_handles.h"

namespace penstock::decode {
namespace {

constexpr std::array kAllowed = {"h264", "hevc",       "av1",  "vp9",
                                 "vp8",  "mpeg2video", "mpeg4"};

// Fills planes, rows and row_bytes from what the pixel format says.
bool Describe(const AVFrame& f, Picture& p) {
  const AVPixFmtDescriptor* d =
      av_pix_fmt_desc_get(static_cast<AVPixelFormat>(f.format));
  if (d == nullptr || (d->flags & (AV_PIX_FMT_FLAG_HWACCEL |
                                   AV_PIX_FMT_FLAG_PAL)) != 0) {
    return false;
  }
  p.width = f.width;
  p.height = f.height;
  p.pixel_format = d->name;
  p.bit_depth = static_cast<std::uint8_t>(d->comp[0].depth);
  p.plane_count = av_pix_fmt_count_planes(static_cast<AVPixelFormat>(f.format));
  for (int i = 0; i < p.plane_count; ++i) {
    const int bytes = av_image_get_linesize(
        static_cast<AVPixelFormat>(f.format), f.width, i);
    if (bytes <= 0) return false;
    const bool chroma = (i == 1 || i == 2) && p.plane_count >= 3;
    const bool chroma2 = i == 1 && p.plane_count == 2;
    p.rows[i] = (chroma || chroma2)
                    ? -((-f.height) >> d->log2_chroma_h)
                    : f.height;
    p.row_bytes[i] = bytes;
    p.planes[i] = f.data[i];
    p.strides[i] = f.linesize[i];
  }
  p.key = f.key_frame != 0;
  p.damaged = f.decode_error_flags != 0 || (f.flags & AV_FRAME_FLAG_CORRUPT);
  return true;
}

class FfmpegVideoDecoder final : public VideoDecoder {
 public:
  FfmpegVideoDecoder(ContextPtr context, FramePtr frame, PacketPtr packet)
      : context_(std::move(context)),
        frame_(std::move(frame)),
        packet_(std::move(packet)) {}

  absl::Status Decode(std::uint32_t ordinal,
                      std::span<const std::uint8_t> bytes,
                      const PictureSink& sink) override {
    // FFmpeg reads a little past the end of a packet.
    buffer_.resize(bytes.size() + AV_INPUT_BUFFER_PADDING_SIZE);
    if (!bytes.empty()) std::memcpy(buffer_.data(), bytes.data(), bytes.size());
    std::memset(buffer_.data() + bytes.size(), 0, AV_INPUT_BUFFER_PADDING_SIZE);
    packet_->data = buffer_.data();
    packet_->size = static_cast<int>(bytes.size());
    // The ordinal travels as the pts: it comes back with the picture that the
    // packet holds. (Decoders order by their own picture counts, not by pts.)
    packet_->pts = ordinal;
    packet_->dts = AV_NOPTS_VALUE;
    context_->reordered_opaque = ordinal;
    for (;;) {
      const int rc = avcodec_send_packet(context_.get(), packet_.get());
      if (rc == AVERROR(EAGAIN)) {
        PENSTOCK_RETURN_IF_ERROR(Receive(sink));
        continue;
      }
      if (rc == AVERROR(ENOMEM)) {
        return absl::ResourceExhaustedError("video decoder: no memory");
      }
      if (rc < 0) ++refused_;
      break;
    }
    return Receive(sink);
  }

  absl::Status Drain(const PictureSink& sink) override {
    avcodec_send_packet(context_.get(), nullptr);
    return Receive(sink);
  }

  void Reset() override { avcodec_flush_buffers(context_.get()); }
  std::uint64_t refused() const override { return refused_; }

 private:
  absl::Status Receive(const PictureSink& sink) {
    for (;;) {
      const int rc = avcodec_receive_frame(context_.get(), frame_.get());
      if (rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) return absl::OkStatus();
      if (rc == AVERROR(ENOMEM)) {
        return absl::ResourceExhaustedError("video decoder: no memory");
      }
      if (rc < 0) {  // one picture is lost; the next call goes on
        ++refused_;
        continue;
      }
      Picture p;
      p.packet = static_cast<std::uint32_t>(frame_->reordered_opaque);
      if (Describe(*frame_, p)) sink(p);
      av_frame_unref(frame_.get());
    }
  }

  ContextPtr context_;
  FramePtr frame_;
  PacketPtr packet_;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t refused_ = 0;
};

absl::Status Configure(AVCodecContext& c, const format::CodecParameters& p,
                       int threads) {
  if (!p.extradata.empty()) {
    c.extradata = static_cast<std::uint8_t*>(
        av_mallocz(p.extradata.size() + AV_INPUT_BUFFER_PADDING_SIZE));
    if (c.extradata == nullptr) {
      return absl::ResourceExhaustedError("video decoder: no memory");
    }
    std::memcpy(c.extradata, p.extradata.data(), p.extradata.size());
    c.extradata_size = static_cast<int>(p.extradata.size());
  }
  c.width = static_cast<int>(p.width);
  c.height = static_cast<int>(p.height);
  c.profile = p.profile;
  c.level = p.level;
  c.thread_count = threads;
  // Strict: H.264 without a declared reordering depth waits as long as the
  // standard allows, so that the output order never depends on a guess.
  c.strict_std_compliance = FF_COMPLIANCE_STRICT;
  c.flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT | AV_CODEC_FLAG_UNALIGNED;
  c.max_pixels = 16384ll * 16384;
  return absl::OkStatus();
}

}  // namespace

bool VideoCodecAllowed(std::string_view codec) {
  return std::find(kAllowed.begin(), kAllowed.end(), codec) != kAllowed.end();
}

std::uint64_t HashPicture(const Picture& p) {
  thread_local hash::Xxh3Stream stream;
  stream.Reset();
  for (int i = 0; i < p.plane_count; ++i) {
    for (std::uint32_t y = 0; y < p.rows[i]; ++y) {
      stream.Update({p.planes[i] + y * p.strides[i], p.row_bytes[i]});
    }
  }
  return stream.Digest64();
}

absl::StatusOr<std::unique_ptr<VideoDecoder>> VideoDecoder::Create(
    const format::CodecParameters& parameters, int threads) {
  TakeAvLog();
  if (!VideoCodecAllowed(parameters.codec)) {
    return MakeError(absl::StatusCode::kUnimplemented,
                     {.where = "video decoder",
                      .what = "this codec is not decoded",
                      .found = parameters.codec,
                      .expected = "h264, hevc, av1, vp9, vp8, mpeg2video, mpeg4",
                      .action = "re-encode the capture with one of them"});
  }
  const AVCodecDescriptor* descriptor =
      avcodec_descriptor_get_by_name(parameters.codec.c_str());
  const AVCodec* codec =
      descriptor != nullptr ? avcodec_find_decoder(descriptor->id) : nullptr;
  if (codec == nullptr) {
    return MakeError(
        absl::StatusCode::kUnimplemented,
        {.where = "video decoder",
         .what = "this FFmpeg has no decoder for it",
         .found = parameters.codec,
         .expected = "a codec that this FFmpeg decodes",
         .action =
             "install an FFmpeg that has it, or leave these captures out"});
  }
  ContextPtr context(avcodec_alloc_context3(codec));
  FramePtr frame(av_frame_alloc());
  PacketPtr packet(av_packet_alloc());
  if (!context || !frame || !packet) {
    return absl::ResourceExhaustedError("video decoder: no memory");
  }
  PENSTOCK_RETURN_IF_ERROR(Configure(*context, parameters, threads));
  if (int rc = avcodec_open2(context.get(), codec, nullptr); rc < 0) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = "video decoder " + parameters.codec,
         .what = "the decoder refuses these parameters",
         .found = AvErrorText(rc),
         .expected = "codec parameters that libavcodec opens",
         .action = "import the capture again, or leave it out by a filter"});
  }
  return std::make_unique<FfmpegVideoDecoder>(
      std::move(context), std::move(frame), std::move(packet));
}

}  // namespace penstock::decode
