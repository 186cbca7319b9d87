#ifndef PENSTOCK_SERVER_IMPORT_CONTACT_SHEET_H_
#define PENSTOCK_SERVER_IMPORT_CONTACT_SHEET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/decode/video_decoder.h"

namespace penstock::import {

// What stands under one frame of a contact sheet.
struct SheetCell {
  std::uint64_t frame = 0;
  std::int64_t t_ns = 0;
  bool entry = false, damaged = false;
  std::string inputs;             // "W A SPACE": held or pressed in its interval
  std::int64_t dx = 0, dy = 0;    // mouse, summed over its interval
};

// A grid of thumbnails with frame number, time and the inputs of the interval
// under each: the look by eye at pictures and inputs together.
//
// Threading: one thread. Bounds: `columns` by as many rows as cells need.
class ContactSheet {
 public:
  ContactSheet(std::uint32_t columns, std::uint32_t cells,
               std::uint32_t picture_width, std::uint32_t picture_height);

  // Scales the picture into the next cell. kUnimplemented: its pixel format
  absl::Status Add(const decode::Picture& picture, const SheetCell& cell);

  // Encodes the sheet as PNG into `path`.
  absl::Status Write(const std::string& path) const;

 private:
  void Fill(std::uint32_t x, std::uint32_t y, std::uint32_t w, std::uint32_t h,
            std::uint32_t rgb);
  void Text(std::uint32_t x, std::uint32_t y, const std::string& text,
            std::uint32_t rgb, std::uint32_t chars_max);
  void Vector(std::uint32_t x, std::uint32_t y, std::int64_t dx,
              std::int64_t dy);

  std::uint32_t columns_, thumb_w_, thumb_h_, cell_w_, cell_h_;
  std::uint32_t width_, height_, next_ = 0;
  std::vector<std::uint8_t> rgb_;
};

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_CONTACT_SHEET_H_
