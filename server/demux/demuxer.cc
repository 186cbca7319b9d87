#include "server/demux/demuxer.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/intreadwrite.h>
#include <libavutil/pixdesc.h>
}

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "server/decode/av_log.h"

namespace penstock::demux {
namespace {

constexpr char kAllowedFormats[] =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg";
constexpr int kIoBufferBytes = 256 << 10;
constexpr std::int64_t kProbeBytes = 16 << 20;
struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
};

int ReadFile(void* opaque, std::uint8_t* out, int bytes) {
  for (;;) {
    const ssize_t n = ::read(static_cast<File*>(opaque)->fd, out, bytes);
    if (n > 0) return static_cast<int>(n);
    if (n == 0) return AVERROR_EOF;
    if (errno != EINTR) return AVERROR(errno);
  }
}

std::int64_t SeekFile(void* opaque, std::int64_t offset, int whence) {
  const int fd = static_cast<File*>(opaque)->fd;
  if (whence == AVSEEK_SIZE) {
    struct stat st;
    return ::fstat(fd, &st) == 0 ? st.st_size : AVERROR(errno);
  }
  const off_t at = ::lseek(fd, offset, whence & ~AVSEEK_FORCE);
  return at >= 0 ? at : AVERROR(errno);
}

int RefuseOpen(AVFormatContext*, AVIOContext**, const char*, int,
               AVDictionary**) {
  return AVERROR(EACCES);
}

struct IoClose {
  void operator()(AVIOContext* c) const noexcept {
    av_freep(&c->buffer);
    avio_context_free(&c);
  }
};
struct InputClose {
  void operator()(AVFormatContext* c) const noexcept {
    avformat_close_input(&c);
  }
};
struct PacketFree {
  void operator()(AVPacket* p) const noexcept { av_packet_free(&p); }
};

std::string AvText(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, text, sizeof(text));
  return text;
}

void ReadRotation(const AVStream& in, Stream& out) {
  const auto* m = reinterpret_cast<const std::int32_t*>(
      av_stream_get_side_data(&in, AV_PKT_DATA_DISPLAYMATRIX, nullptr));
  if (m == nullptr) return;
  std::int32_t matrix[9];
  std::copy(m, m + 9, matrix);
  const double det = static_cast<double>(matrix[0]) * matrix[4] -
                     static_cast<double>(matrix[1]) * matrix[3];
  if (det < 0) {
    out.mirrored = true;
    av_display_matrix_flip(matrix, 1, 0);
  }
  const double degrees = -av_display_rotation_get(matrix);
  if (std::isnan(degrees)) return;
  out.rotation = ((static_cast<int>(std::lround(degrees / 90.0)) * 90) % 360 +
                  360) % 360;
}

// A time that a recording can have. What is further away (or not there) counts
// as unknown, so that no sum of times overflows later.
bool SaneTime(std::int64_t value, const Rational& tb) {
  constexpr double kSecondsMax = 1e9;  // some 30 years
  return value != AV_NOPTS_VALUE &&
         std::abs(static_cast<double>(value) * static_cast<double>(tb.num) /
                  static_cast<double>(tb.den)) <= kSecondsMax;
}

Stream Describe(const AVStream& in) {
  const AVCodecParameters& p = *in.codecpar;
  Stream s;
  s.kind = p.codec_type == AVMEDIA_TYPE_VIDEO   ? StreamKind::kVideo
           : p.codec_type == AVMEDIA_TYPE_AUDIO ? StreamKind::kAudio
                                                : StreamKind::kOther;
  if ((in.disposition & AV_DISPOSITION_ATTACHED_PIC) != 0) {
    s.kind = StreamKind::kOther;  // a cover picture is no video
  }
  s.codec.codec = avcodec_get_name(p.codec_id);
  s.codec.extradata.assign(p.extradata, p.extradata + p.extradata_size);
  s.codec.profile = p.profile;
  s.codec.level = p.level;
  s.time_base = {in.time_base.num, in.time_base.den};
  if (s.time_base.num <= 0 || s.time_base.den <= 0) s.time_base = {1, 90000};
  s.average_rate = {in.avg_frame_rate.num, std::max(in.avg_frame_rate.den, 1)};
  s.base_rate = {in.r_frame_rate.num, std::max(in.r_frame_rate.den, 1)};
  s.header_frames = in.nb_frames;
  if (s.kind == StreamKind::kVideo) {
    s.codec.width = p.width;
    s.codec.height = p.height;
    if (const char* name =
            av_get_pix_fmt_name(static_cast<AVPixelFormat>(p.format))) {
      s.codec.pixel_format = name;
    }
    s.matrix = static_cast<std::uint8_t>(p.color_space);
    s.transfer = static_cast<std::uint8_t>(p.color_trc);
    s.primaries = static_cast<std::uint8_t>(p.color_primaries);
    s.full_range = p.color_range == AVCOL_RANGE_JPEG ||
                   s.codec.pixel_format.starts_with("yuvj");
    s.range_known = p.color_range != AVCOL_RANGE_UNSPECIFIED || s.full_range;
    ReadRotation(in, s);
  } else if (s.kind == StreamKind::kAudio) {
    s.codec.sample_rate = p.sample_rate;
    s.codec.channels = p.ch_layout.nb_channels;
    s.codec.bits = p.bits_per_raw_sample > 0 ? p.bits_per_raw_sample
                                             : p.bits_per_coded_sample;
    s.codec.block_align = p.block_align;
    s.codec.frame_size = p.frame_size;
    s.initial_padding = p.initial_padding;
  }
  return s;
}

class FfmpegDemuxer final : public Demuxer {
 public:
  explicit FfmpegDemuxer(std::string path) : path_(std::move(path)) {}

  absl::Status Init() {
    decode::AvLogScope scope(complaints_);
    // A pipe would be waited for, without end.
    struct stat st;
    if (::stat(path_.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       {.where = path_,
                        .what = "not a regular file",
                        .found = "a folder, device, pipe or socket",
                        .expected = "a recording",
                        .action = "remove it from the sources"});
    }
    file_.fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_.fd < 0) return ErrnoError(errno, path_, "check path and rights");
    io_.reset(avio_alloc_context(
        static_cast<unsigned char*>(av_malloc(kIoBufferBytes)), kIoBufferBytes,
        0, &file_, ReadFile, nullptr, SeekFile));
    AVFormatContext* raw = avformat_alloc_context();
    if (!io_ || raw == nullptr) {
      return absl::ResourceExhaustedError("demuxer: no memory");
    }
    raw->pb = io_.get();
    raw->flags |= AVFMT_FLAG_CUSTOM_IO;
    raw->io_open = RefuseOpen;
    raw->probesize = kProbeBytes;
    raw->format_whitelist = av_strdup(kAllowedFormats);
    raw->protocol_whitelist = av_strdup("");
    if (int rc = avformat_open_input(&raw, "", nullptr, nullptr); rc < 0) {
      return OpenError(rc);
    }
    context_.reset(raw);
    if (int rc = avformat_find_stream_info(raw, nullptr); rc < 0) {
      return OpenError(rc);
    }
    for (unsigned i = 0; i < raw->nb_streams; ++i) {
      streams_.push_back(Describe(*raw->streams[i]));
    }
    packet_.reset(av_packet_alloc());
    return absl::OkStatus();
  }

  const std::vector<Stream>& streams() const override { return streams_; }
  std::string container() const override { return context_->iformat->name; }
  std::vector<std::string> complaints() const override { return complaints_; }

  absl::StatusOr<bool> Next(Packet& out) override {
    decode::AvLogScope scope(complaints_);
    for (;;) {
      av_packet_unref(packet_.get());
      const int rc = av_read_frame(context_.get(), packet_.get());
      if (rc == AVERROR(EAGAIN)) continue;
      if (rc == AVERROR(ENOMEM)) {
        // In practice a damaged size: real shortage ends the process.
        return MakeError(absl::StatusCode::kInvalidArgument,
                         {.where = path_,
                          .what = "a packet asks for more memory than there is",
                          .found = "a packet size beyond the memory",
                          .expected = "packets of at most some MiB",
                          .action = "the file is damaged: copy it again, or "
                                    "remove it from the sources"});
      }
      if (rc == AVERROR(EIO)) {
        return absl::UnavailableError(path_ + ": read error");
      }
      if (rc < 0) return false;  // the end, or bytes no one can take apart
      const auto index = static_cast<std::size_t>(packet_->stream_index);
      if (index >= streams_.size()) continue;  // appeared after the header
      break;
    }
    out = {};
    const AVPacket& p = *packet_;
    out.stream = p.stream_index;
    const Rational tb =
        streams_[static_cast<std::size_t>(p.stream_index)].time_base;
    out.pts = SaneTime(p.pts, tb) ? p.pts : format::kNoPts;
    out.dts = SaneTime(p.dts, tb) ? p.dts : format::kNoPts;
    out.duration = p.duration > 0 && SaneTime(p.duration, tb) ? p.duration : 0;
    if (p.flags & AV_PKT_FLAG_KEY) out.flags |= kDemuxKey;
    if (p.flags & AV_PKT_FLAG_DISCARD) out.flags |= kDemuxDiscard;
    if (p.flags & AV_PKT_FLAG_CORRUPT) out.flags |= kDemuxCorrupt;
    std::size_t bytes = 0;
    const auto* extradata =
        av_packet_get_side_data(&p, AV_PKT_DATA_NEW_EXTRADATA, &bytes);
    const auto& known = streams_[p.stream_index].codec.extradata;
    if (extradata != nullptr &&
        !std::equal(extradata, extradata + bytes, known.begin(), known.end())) {
      out.flags |= kDemuxNewParameters;
    }
    const auto* skip =
        av_packet_get_side_data(&p, AV_PKT_DATA_SKIP_SAMPLES, &bytes);
    if (skip != nullptr && bytes >= 10) {
      out.skip_start = AV_RL32(skip);
      out.skip_end = AV_RL32(skip + 4);
    }
    out.data = {p.data, static_cast<std::size_t>(p.size)};
    return true;
  }

 private:
  absl::Status OpenError(int rc) const {
    Problem problem{
        .where = path_,
        .what = "cannot be opened as a video",
        .found = complaints_.empty() ? AvText(rc) : complaints_.back(),
        .expected = "mp4, mov, mkv, webm, ts or mpeg",
        .action = "check that the recording was finished and copied whole, or "
                  "remove the file from the sources"};
    bool cut_off = false;
    for (const auto& c : complaints_) {
      cut_off |= c.find("moov atom not found") != std::string::npos;
    }
    if (cut_off) problem.what = "the index (moov) of this mp4 is missing: cut off";
    return MakeError(absl::StatusCode::kInvalidArgument, problem);
  }

  std::string path_;
  File file_;
  std::unique_ptr<AVIOContext, IoClose> io_;
  std::unique_ptr<AVFormatContext, InputClose> context_;
  std::unique_ptr<AVPacket, PacketFree> packet_;
  std::vector<Stream> streams_;
  std::vector<std::string> complaints_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Demuxer>> Demuxer::Open(
    const std::string& path) {
  auto demuxer = std::make_unique<FfmpegDemuxer>(path);
  PENSTOCK_RETURN_IF_ERROR(demuxer->Init());
  return demuxer;
}

}  // namespace penstock::demux
