#include "server/import/contact_sheet.h"

extern "C" {
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "server/decode/ffmpeg_handles.h"

namespace penstock::import {
namespace {

constexpr std::uint32_t kThumbWidth = 200;
constexpr std::uint32_t kGap = 6;
constexpr std::uint32_t kTextHeight = 40;
constexpr std::uint32_t kScale = 2;  // of the 3x5 glyphs

// 3x5 glyphs, five rows of three bits, the highest bit left.
struct Glyph {
  char c;
  const char* rows;
};
constexpr Glyph kGlyphs[] = {
    {'0', "75557"}, {'A', "25755"}, {'B', "65656"}, {'C', "34443"},
    {'D', "65556"}, {'E', "74647"}, {'F', "74644"}, {'G', "34553"},
    {'H', "55755"}, {'I', "72227"}, {'J', "11152"}, {'K', "55655"},
    {'L', "44447"}, {'M', "57755"}, {'N', "65555"}, {'O', "75557"},
    {'P', "65644"}, {'Q', "25563"}, {'R', "65655"}, {'S', "34216"},
    {'T', "72222"}, {'U', "55557"}, {'V', "55552"}, {'W', "55775"},
    {'X', "55255"}, {'Y', "55222"}, {'Z', "71247"}, {'1', "26227"},
    {'2', "61247"}, {'3', "61216"}, {'4', "55711"}, {'5', "74616"},
    {'6', "34757"}, {'7', "71224"}, {'8', "75757"}, {'9', "75716"},
    {':', "02020"}, {'.', "00002"}, {'-', "00700"}, {'+', "02720"},
    {'#', "57575"}, {'_', "00007"}, {'/', "11244"}, {'?', "61202"},
};

const char* RowsOf(char c) {
  c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const Glyph& g : kGlyphs) {
    if (g.c == c) return g.rows;
  }
  return c == ' ' ? "00000" : "61202";
}

struct ScalerFree {
  void operator()(SwsContext* s) const noexcept { sws_freeContext(s); }
};

std::string TimeText(std::int64_t ns) {
  const std::int64_t ms = ns / 1'000'000;
  return absl::StrFormat("%d:%02d.%03d", ms / 60000, ms / 1000 % 60, ms % 1000);
}

}  // namespace

ContactSheet::ContactSheet(std::uint32_t columns, std::uint32_t cells,
                           std::uint32_t picture_width,
                           std::uint32_t picture_height)
    : columns_(std::max(1u, std::min(columns, cells))),
      thumb_w_(kThumbWidth),
      thumb_h_(std::clamp(kThumbWidth * picture_height /
                              std::max(picture_width, 1u),
                          16u, 600u)),
      cell_w_(thumb_w_ + kGap),
      cell_h_(thumb_h_ + kTextHeight + kGap),
      width_(columns_ * cell_w_ + kGap),
      height_((cells + columns_ - 1) / columns_ * cell_h_ + kGap),
      rgb_(std::size_t{3} * width_ * height_, 24) {}

void ContactSheet::Fill(std::uint32_t x, std::uint32_t y, std::uint32_t w,
                        std::uint32_t h, std::uint32_t rgb) {
  for (std::uint32_t j = y; j < std::min(y + h, height_); ++j) {
    for (std::uint32_t i = x; i < std::min(x + w, width_); ++i) {
      std::uint8_t* p = rgb_.data() + 3 * (std::size_t{j} * width_ + i);
      p[0] = static_cast<std::uint8_t>(rgb >> 16);
      p[1] = static_cast<std::uint8_t>(rgb >> 8);
      p[2] = static_cast<std::uint8_t>(rgb);
    }
  }
}

void ContactSheet::Text(std::uint32_t x, std::uint32_t y,
                        const std::string& text, std::uint32_t rgb,
                        std::uint32_t chars_max) {
  for (std::size_t i = 0; i < std::min<std::size_t>(text.size(), chars_max);
       ++i) {
    const char* rows = RowsOf(text[i]);
    for (std::uint32_t r = 0; r < 5; ++r) {
      for (std::uint32_t c = 0; c < 3; ++c) {
        if (((rows[r] - '0') >> (2 - c)) & 1) {
          Fill(x + static_cast<std::uint32_t>(i) * 4 * kScale + c * kScale,
               y + r * kScale, kScale, kScale, rgb);
        }
      }
    }
  }
}

void ContactSheet::Vector(std::uint32_t x, std::uint32_t y, std::int64_t dx,
                          std::int64_t dy) {
  const double length = std::hypot(static_cast<double>(dx), dy);
  if (length == 0) return;
  const double shown = std::min(16.0, 3 + std::sqrt(length));
  for (double t = 0; t <= shown; t += 0.5) {
    Fill(static_cast<std::uint32_t>(x + dx / length * t),
         static_cast<std::uint32_t>(y + dy / length * t), 2, 2, 0xFFD040);
  }
  Fill(x, y, 3, 3, 0xFF6060);  // where it starts
}

absl::Status ContactSheet::Add(const decode::Picture& p,
                               const SheetCell& cell) {
  const std::uint32_t x = kGap + next_ % columns_ * cell_w_;
  const std::uint32_t y = kGap + next_ / columns_ * cell_h_;
  ++next_;
  if (y + cell_h_ > height_) return absl::OutOfRangeError("sheet is full");
  const AVPixelFormat format =
      av_get_pix_fmt(std::string(p.pixel_format).c_str());
  std::unique_ptr<SwsContext, ScalerFree> scaler(sws_getContext(
      p.width, p.height, format, thumb_w_, thumb_h_, AV_PIX_FMT_RGB24,
      SWS_AREA, nullptr, nullptr, nullptr));
  if (!scaler) {
    return MakeError(absl::StatusCode::kUnimplemented,
                     {.where = "contact sheet",
                      .what = "this pixel format is not drawn",
                      .found = std::string(p.pixel_format),
                      .expected = "a format that libswscale reads",
                      .action = "use --raw"});
  }
  // Scaled into a buffer of its own: the scaler may write past a row's end.
  std::vector<std::uint8_t> thumb(std::size_t{thumb_w_ + 64} * 3 * thumb_h_);
  const std::uint8_t* planes[4] = {p.planes[0], p.planes[1], p.planes[2],
                                   p.planes[3]};
  int strides[4];
  for (int i = 0; i < 4; ++i) strides[i] = static_cast<int>(p.strides[i]);
  std::uint8_t* out[4] = {thumb.data()};
  const int out_stride[4] = {static_cast<int>(thumb_w_ + 64) * 3};
  sws_scale(scaler.get(), planes, strides, 0, static_cast<int>(p.height), out,
            out_stride);
  for (std::uint32_t j = 0; j < thumb_h_; ++j) {
    std::memcpy(rgb_.data() + 3 * (std::size_t{y + j} * width_ + x),
                thumb.data() + std::size_t{j} * out_stride[0], 3 * thumb_w_);
  }
  if (cell.entry) Fill(x, y + thumb_h_, thumb_w_, 3, 0x40C060);
  if (cell.damaged) Fill(x, y + thumb_h_, thumb_w_, 3, 0xE04040);
  const std::uint32_t chars = thumb_w_ / (4 * kScale);
  Text(x, y + thumb_h_ + 6,
       absl::StrFormat("#%d %s", cell.frame, TimeText(cell.t_ns)), 0xC0C0C0,
       chars);
  Text(x, y + thumb_h_ + 20, cell.inputs, 0xFFFFFF, chars - 5);
  Vector(x + thumb_w_ - 20, y + thumb_h_ + 22, cell.dx, cell.dy);
  return absl::OkStatus();
}

absl::Status ContactSheet::Write(const std::string& path) const {
  const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_PNG);
  decode::ContextPtr context(codec ? avcodec_alloc_context3(codec) : nullptr);
  decode::FramePtr frame(av_frame_alloc());
  decode::PacketPtr packet(av_packet_alloc());
  if (!context || !frame || !packet) {
    return absl::UnimplementedError("this FFmpeg has no PNG encoder");
  }
  context->width = static_cast<int>(width_);
  context->height = static_cast<int>(height_);
  context->pix_fmt = AV_PIX_FMT_RGB24;
  context->time_base = {1, 1};
  if (int rc = avcodec_open2(context.get(), codec, nullptr); rc < 0) {
    return absl::InternalError("PNG encoder: " + decode::AvErrorText(rc));
  }
  frame->width = context->width;
  frame->height = context->height;
  frame->format = AV_PIX_FMT_RGB24;
  if (av_frame_get_buffer(frame.get(), 0) < 0) {
    return absl::ResourceExhaustedError("contact sheet: no memory");
  }
  for (std::uint32_t y = 0; y < height_; ++y) {
    std::memcpy(frame->data[0] + std::ptrdiff_t{frame->linesize[0]} * y,
                rgb_.data() + std::size_t{3} * width_ * y, 3ull * width_);
  }
  avcodec_send_frame(context.get(), frame.get());
  avcodec_send_frame(context.get(), nullptr);
  if (avcodec_receive_packet(context.get(), packet.get()) != 0) {
    return absl::InternalError("PNG encoder gave no picture");
  }
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return ErrnoError(errno, path, "check the path of --png");
  const bool ok = std::fwrite(packet->data, 1, packet->size, file) ==
                  static_cast<std::size_t>(packet->size);
  if (std::fclose(file) != 0 || !ok) {
    return absl::UnavailableError(path + ": could not be written whole");
  }
  return absl::OkStatus();
}

}  // namespace penstock::import
