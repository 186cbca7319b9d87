#include "server/import/audio_ingest.h"

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/cpu.h>
#include <libavutil/intreadwrite.h>
#include <libavutil/samplefmt.h>
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "server/decode/ffmpeg_handles.h"

namespace penstock::import {
namespace {

using decode::ContextPtr;
using decode::FramePtr;
using decode::PacketPtr;

constexpr int kFlacFrameSamples = 4096;
constexpr std::uint32_t kChannelsMax = 8;

bool IsLossless(const std::string& codec) {
  return codec == "flac" || codec.starts_with("pcm_");
}

// CPU flags are one setting of the process: opened under a lock, with them off
// only while a floating-point decoder picks its functions.
ContextPtr OpenWithoutSimd(const AVCodec* codec, const demux::Stream& stream,
                           bool fixed_point, int& error) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  ContextPtr context(avcodec_alloc_context3(codec));
  if (!context) {
    error = AVERROR(ENOMEM);
    return nullptr;
  }
  const auto& p = stream.codec;
  context->extradata = static_cast<std::uint8_t*>(
      av_mallocz(p.extradata.size() + AV_INPUT_BUFFER_PADDING_SIZE));
  if (!p.extradata.empty()) {
    std::memcpy(context->extradata, p.extradata.data(), p.extradata.size());
  }
  context->extradata_size = static_cast<int>(p.extradata.size());
  context->sample_rate = static_cast<int>(p.sample_rate);
  av_channel_layout_default(&context->ch_layout, static_cast<int>(p.channels));
  context->block_align = static_cast<int>(p.block_align);
  context->bits_per_coded_sample = static_cast<int>(p.bits);
  context->pkt_timebase = {static_cast<int>(stream.time_base.num),
                           static_cast<int>(stream.time_base.den)};
  context->thread_count = 1;
  if (!fixed_point) av_force_cpu_flags(0);
  error = avcodec_open2(context.get(), codec, nullptr);
  if (!fixed_point) av_force_cpu_flags(-1);
  if (error < 0) return nullptr;
  return context;
}

std::int16_t FromFloat(double v) {
  const double scaled = std::nearbyint(v * 32768.0);
  return static_cast<std::int16_t>(std::clamp(scaled, -32768.0, 32767.0));
}

// Sample `i` of channel `c` as 16 bit, rounded to nearest.
bool SampleAt(const AVFrame& f, int c, int i, std::int16_t& out) {
  const auto format = static_cast<AVSampleFormat>(f.format);
  const bool planar = av_sample_fmt_is_planar(format) != 0;
  const std::uint8_t* plane = f.extended_data[planar ? c : 0];
  const int at = planar ? i : i * f.ch_layout.nb_channels + c;
  switch (av_get_packed_sample_fmt(format)) {
    case AV_SAMPLE_FMT_S16:
      out = reinterpret_cast<const std::int16_t*>(plane)[at];
      return true;
    case AV_SAMPLE_FMT_S32: {
      const std::int64_t v = reinterpret_cast<const std::int32_t*>(plane)[at];
      out = static_cast<std::int16_t>(
          std::min<std::int64_t>((v + (1 << 15)) >> 16, 32767));
      return true;
    }
    case AV_SAMPLE_FMT_FLT:
      out = FromFloat(reinterpret_cast<const float*>(plane)[at]);
      return true;
    case AV_SAMPLE_FMT_DBL:
      out = FromFloat(reinterpret_cast<const double*>(plane)[at]);
      return true;
    case AV_SAMPLE_FMT_U8:
      out = static_cast<std::int16_t>((plane[at] - 128) * 256);
      return true;
    default:
      return false;
  }
}

class AudioIngestBase : public AudioIngest {
 public:
  AudioIngestBase(const demux::Stream& stream, Spool& spool, std::string where)
      : spool_(spool), where_(std::move(where)) {
    out_.stream = stream;
    out_.source_codec = stream.codec.codec;
  }

 protected:
  absl::Status Store(std::span<const std::uint8_t> data, std::int64_t pts,
                     std::int64_t duration) {
    if (data.size() > format::kBlockBytesMax - 4096) {
      return MakeError(
          absl::StatusCode::kInvalidArgument,
          {.where = where_,
           .what = "an audio packet is larger "
                   "than a block",
           .found = "more than 8 MiB",
           .expected = "at most 8 MiB",
           .action =
               "re-encode the audio, or remove the capture from the sources"});
    }
    format::PacketRow row{};
    row.pts = pts;
    row.dts = pts;
    row.duration = duration;
    row.bytes = static_cast<std::uint32_t>(data.size());
    row.frame = format::kNoFrame;
    row.flags = format::kPacketKey;
    out_.packets.push_back(row);
    PENSTOCK_ASSIGN_OR_RETURN(const auto at, spool_.Append(data));
    out_.spool_offset.push_back(at);
    return absl::OkStatus();
  }

  Spool& spool_;
  std::string where_;
  IngestedAudio out_;
};

// FLAC and PCM packets, untouched.
class LosslessIngest final : public AudioIngestBase {
 public:
  using AudioIngestBase::AudioIngestBase;
  absl::Status Add(const demux::Packet& p) override {
    out_.samples += SamplesIn(p);
    return Store(p.data, p.pts, p.duration);
  }
  absl::StatusOr<IngestedAudio> Finish() override { return std::move(out_); }

 private:
  std::uint64_t SamplesIn(const demux::Packet& p) const {
    const auto& tb = out_.stream.time_base;
    return tb.den > 0 ? static_cast<std::uint64_t>(std::max<std::int64_t>(
                            p.duration, 0)) *
                            tb.num * out_.stream.codec.sample_rate / tb.den
                      : 0;
  }
};

// Everything else: decoded, rounded to 16 bit, FLAC.
class DecodingIngest final : public AudioIngestBase {
 public:
  DecodingIngest(const demux::Stream& stream, Spool& spool, std::string where,
                 ContextPtr decoder)
      : AudioIngestBase(stream, spool, std::move(where)),
        decoder_(std::move(decoder)),
        frame_(av_frame_alloc()),
        packet_(av_packet_alloc()),
        source_base_(stream.time_base) {
    out_.decoder = decoder_->codec->name;
    out_.stream.time_base = {1, stream.codec.sample_rate};
  }

  absl::Status Add(const demux::Packet& p) override {
    buffer_.assign(p.data.begin(), p.data.end());
    buffer_.resize(p.data.size() + AV_INPUT_BUFFER_PADDING_SIZE, 0);
    av_packet_unref(packet_.get());
    packet_->data = buffer_.data();
    packet_->size = static_cast<int>(p.data.size());
    packet_->pts = p.pts == format::kNoPts ? AV_NOPTS_VALUE : p.pts;
    packet_->dts = p.dts == format::kNoPts ? AV_NOPTS_VALUE : p.dts;
    packet_->duration = p.duration;
    if (p.skip_start != 0 || p.skip_end != 0) {
      if (auto* side = av_packet_new_side_data(
              packet_.get(), AV_PKT_DATA_SKIP_SAMPLES, 10)) {
        std::memset(side, 0, 10);
        AV_WL32(side, p.skip_start);
        AV_WL32(side + 4, p.skip_end);
      }
    }
    const int rc = avcodec_send_packet(decoder_.get(), packet_.get());
    if (rc == AVERROR(ENOMEM)) return absl::ResourceExhaustedError("no memory");
    if (rc < 0) ++refused_;
    return Receive();
  }

  absl::StatusOr<IngestedAudio> Finish() override {
    avcodec_send_packet(decoder_.get(), nullptr);
    PENSTOCK_RETURN_IF_ERROR(Receive());
    PENSTOCK_RETURN_IF_ERROR(EndPiece());
    if (refused_ > 0) {
      out_.notes.push_back(absl::StrFormat(
          "%d audio packets could not be decoded; the track has gaps there",
          refused_));
    }
    return std::move(out_);
  }

 private:
  absl::Status Receive() {
    for (;;) {
      const int rc = avcodec_receive_frame(decoder_.get(), frame_.get());
      if (rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) return absl::OkStatus();
      if (rc < 0) {
        ++refused_;
        continue;
      }
      PENSTOCK_RETURN_IF_ERROR(Take(*frame_));
      av_frame_unref(frame_.get());
    }
  }

  absl::Status Take(const AVFrame& f) {
    const int channels = f.ch_layout.nb_channels;
    if (channels_ == 0) {
      channels_ = channels;
      rate_ = f.sample_rate;
      out_.stream.time_base = {1, rate_};
    }
    if (channels != channels_ || f.sample_rate != rate_) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       {.where = where_,
                        .what = "the audio changes its rate or channels",
                        .found = absl::StrFormat("%d Hz, %d channels",
                                                 f.sample_rate, channels),
                        .expected = absl::StrFormat("%d Hz, %d channels", rate_,
                                                    channels_),
                        .action = "re-encode the audio to one format"});
    }
    std::int64_t pts = next_pts_;
    if (f.pts != AV_NOPTS_VALUE) {
      pts = av_rescale_q(f.pts,
                         {static_cast<int>(source_base_.num),
                          static_cast<int>(source_base_.den)},
                         {1, rate_});
    }
    // Time bases coarser than a sample jitter; a real gap is a millisecond.
    if (!started_ || std::abs(pts - next_pts_) > std::max(rate_ / 1000, 1) +
                         SourceTickSamples()) {
      if (started_) {
        PENSTOCK_RETURN_IF_ERROR(EndPiece());
        ++out_.gaps;
      }
      next_pts_ = piece_pts_ = pts;
      started_ = true;
    }
    for (int i = 0; i < f.nb_samples; ++i) {
      for (int c = 0; c < channels; ++c) {
        std::int16_t v = 0;
        if (!SampleAt(f, c, i, v)) {
          return MakeError(absl::StatusCode::kUnimplemented,
                           {.where = where_,
                            .what = "unknown sample format",
                            .found = std::to_string(f.format),
                            .expected = "integers or floats of 8 to 64 bit",
                            .action = "re-encode the audio, or remove the "
                                      "capture from the sources"});
        }
        pending_.push_back(v);
      }
    }
    next_pts_ += f.nb_samples;
    out_.samples += f.nb_samples;
    return EncodeWhole();
  }

  std::int64_t SourceTickSamples() const {
    return source_base_.den > 0 ? source_base_.num * rate_ / source_base_.den : 0;
  }

  absl::Status OpenEncoder() {
    const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_FLAC);
    encoder_.reset(codec ? avcodec_alloc_context3(codec) : nullptr);
    if (!encoder_) return absl::UnimplementedError("FFmpeg has no FLAC encoder");
    encoder_->sample_rate = rate_;
    encoder_->sample_fmt = AV_SAMPLE_FMT_S16;
    encoder_->time_base = {1, rate_};
    encoder_->frame_size = kFlacFrameSamples;
    encoder_->flags |= AV_CODEC_FLAG_BITEXACT;
    encoder_->thread_count = 1;
    av_channel_layout_default(&encoder_->ch_layout, channels_);
    if (int rc = avcodec_open2(encoder_.get(), codec, nullptr); rc < 0) {
      return MakeError(
          absl::StatusCode::kUnimplemented,
          {.where = where_,
           .what = "the FLAC encoder refuses",
           .found = decode::AvErrorText(rc),
           .expected = "a rate and channels that FLAC has",
           .action =
               "re-encode the audio, or remove the capture from the sources"});
    }
    encoder_->frame_size = kFlacFrameSamples;
    auto& codec_out = out_.stream.codec;
    codec_out = {};
    codec_out.codec = "flac";
    codec_out.sample_rate = rate_;
    codec_out.channels = channels_;
    codec_out.bits = 16;
    codec_out.frame_size = kFlacFrameSamples;
    codec_out.extradata.assign(encoder_->extradata,
                               encoder_->extradata + encoder_->extradata_size);
    return absl::OkStatus();
  }

  absl::Status EncodeWhole() {
    const std::size_t whole =
        static_cast<std::size_t>(kFlacFrameSamples) * channels_;
    std::size_t at = 0;
    for (; pending_.size() - at >= whole; at += whole) {
      PENSTOCK_RETURN_IF_ERROR(Encode(pending_.data() + at, kFlacFrameSamples));
    }
    pending_.erase(pending_.begin(), pending_.begin() + at);
    return absl::OkStatus();
  }

  absl::Status Encode(const std::int16_t* samples, int count) {
    if (!encoder_) PENSTOCK_RETURN_IF_ERROR(OpenEncoder());
    FramePtr in(av_frame_alloc());
    in->format = AV_SAMPLE_FMT_S16;
    in->sample_rate = rate_;
    in->nb_samples = count;
    av_channel_layout_copy(&in->ch_layout, &encoder_->ch_layout);
    if (av_frame_get_buffer(in.get(), 0) < 0) {
      return absl::ResourceExhaustedError("no memory");
    }
    std::memcpy(in->data[0], samples,
                static_cast<std::size_t>(count) * channels_ * 2);
    in->pts = piece_pts_;
    avcodec_send_frame(encoder_.get(), in.get());
    return Collect();
  }

  absl::Status Collect() {
    PacketPtr p(av_packet_alloc());
    while (avcodec_receive_packet(encoder_.get(), p.get()) == 0) {
      if (p->size > 0) {
        const std::int64_t samples = p->duration;
        PENSTOCK_RETURN_IF_ERROR(
            Store({p->data, static_cast<std::size_t>(p->size)}, piece_pts_,
                  samples));
        piece_pts_ += samples;
      }
      av_packet_unref(p.get());
    }
    return absl::OkStatus();
  }

  // The short last frame of a contiguous piece ends its encoder.
  absl::Status EndPiece() {
    if (channels_ == 0) return absl::OkStatus();
    if (!pending_.empty()) {
      PENSTOCK_RETURN_IF_ERROR(Encode(
          pending_.data(), static_cast<int>(pending_.size()) / channels_));
      pending_.clear();
    }
    if (encoder_) {
      avcodec_send_frame(encoder_.get(), nullptr);
      PENSTOCK_RETURN_IF_ERROR(Collect());
      encoder_.reset();
    }
    return absl::OkStatus();
  }

  ContextPtr decoder_, encoder_;
  FramePtr frame_;
  PacketPtr packet_;
  demux::Rational source_base_;
  std::vector<std::uint8_t> buffer_;
  std::vector<std::int16_t> pending_;
  int channels_ = 0, rate_ = 0;
  bool started_ = false;
  std::int64_t next_pts_ = 0, piece_pts_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AudioIngest>> AudioIngest::Create(
    const demux::Stream& stream, Spool& spool, std::string where) {
  if (IsLossless(stream.codec.codec)) {
    return std::make_unique<LosslessIngest>(stream, spool, std::move(where));
  }
  const std::string& name = stream.codec.codec;
  const AVCodec* fixed = name == "aac"   ? avcodec_find_decoder_by_name("aac_fixed")
                         : name == "ac3" ? avcodec_find_decoder_by_name("ac3_fixed")
                         : name == "mp3" ? avcodec_find_decoder_by_name("mp3")
                                         : nullptr;
  const AVCodecDescriptor* descriptor =
      avcodec_descriptor_get_by_name(name.c_str());
  const AVCodec* codec = fixed != nullptr ? fixed
                         : descriptor != nullptr
                             ? avcodec_find_decoder(descriptor->id)
                             : nullptr;
  if (codec == nullptr || stream.codec.channels == 0 ||
      stream.codec.channels > kChannelsMax) {
    return MakeError(
        absl::StatusCode::kUnimplemented,
        {.where = where,
         .what = "this audio is not decoded",
         .found =
             absl::StrFormat("%s, %d channels", name, stream.codec.channels),
         .expected = "a codec of this FFmpeg, 1 to 8 channels",
         .action =
             "re-encode the audio, or remove the capture from the sources"});
  }
  int error = 0;
  ContextPtr context =
      OpenWithoutSimd(codec, stream, fixed != nullptr, error);
  if (!context) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = where,
         .what = "the audio decoder refuses these "
                 "parameters",
         .found = decode::AvErrorText(error),
         .expected = "codec parameters that libavcodec opens",
         .action = "check that the recording was finished and copied whole"});
  }
  return std::make_unique<DecodingIngest>(stream, spool, std::move(where),
                                          std::move(context));
}

}  // namespace penstock::import
