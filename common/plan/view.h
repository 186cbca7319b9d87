#ifndef PENSTOCK_COMMON_PLAN_VIEW_H_
#define PENSTOCK_COMMON_PLAN_VIEW_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/format/capture_index.h"
#include "common/plan/feed_spec.h"

namespace penstock::plan {

// A capture that a source uses, and the video track its windows are made of.
struct SelectedCapture {
  std::uint32_t capture = 0;  // row of the capture section
  std::uint32_t track = 0;    // row of the track section
};

// Frames of a track: start, start + stride, …
struct Window {
  std::uint32_t capture = 0, track = 0;
  std::uint64_t start_frame = 0;
  std::uint32_t stride = 1, frames = 1;
  friend bool operator==(const Window&, const Window&) = default;
};

// What a View holds, as rows that may lie in a mapped file.
struct ViewSlot {
  std::uint32_t capture = 0, track = 0, stride = 1;
};
static_assert(sizeof(ViewSlot) == 12);
// Windows [first, first of the next piece) of one run.
struct ViewPiece {
  std::uint64_t first = 0;
  std::uint64_t start = 0;  // frame of its first window; aligned: its GOP's row
  std::uint32_t slot = 0;   // in the view's slots
  std::uint32_t reserved = 0;
};
static_assert(sizeof(ViewPiece) == 24);
struct ViewRows {
  std::uint64_t low = 1, high = 1;  // frames of its windows
  std::uint64_t size = 0;           // windows
  std::span<const ViewSlot> slots;
  std::span<const ViewPiece> pieces;
};

// The windows of a source's captures, numbered from 0 in capture order.
//
// Windows never leave a run. Without alignment they start every `hop` frames
// from the run's first. With `align: gop` they start on verified entries (first
// frame of a GOP behind its lead frames): the first in the run, then each time
// the first that is at least `hop` frames after the one before. A window has
// `frames` frames, or with `min_frames` as many as the run has left, at least those.
//
// Threading: immutable, any thread. Ownership: shares its rows; needs nothing of
//   the index except, with `align: gop`, the GOP rows and, with `min_frames`, the rows
//   of tracks and runs: the index outlives it.
// Bounds: 24 bytes a run (a piece of 64 GOPs with `align: gop`), 12 a capture;
//   nothing grows with the number of windows. At() is O(log runs), plus at most
//   64 GOP rows.
class View {
 public:
  // `where` names the source and dataset in messages. Captures are taken in the
  // given order.
  //
  // kInvalidArgument:    a window is longer than every run (says what fits); a
  //                      track without constant rate or a rate that fps does
  //                      not divide; no captures
  // kDataLoss:           rows of the index that point outside it
  static absl::StatusOr<View> Create(const ViewSpec& spec,
                                     const format::CaptureIndexView& index,
                                     std::span<const SelectedCapture> captures,
                                     std::string_view where);

  // Those windows of the view that have [low, high] frames; maybe none.
  // Errors: as Create, but for windows that do not fit and no captures
  static absl::StatusOr<View> CreateOf(const ViewSpec& spec, std::uint64_t low,
                                       std::uint64_t high,
                                       const format::CaptureIndexView& index,
                                       std::span<const SelectedCapture> captures,
                                       std::string_view where);

  // The view that rows() gave, over the same index. Checks that no row points
  // outside the rows or the sections of the index; not that it is the view of
  // these captures. `owner` keeps the rows. O(rows)
  //
  // kDataLoss: rows that no view has
  static absl::StatusOr<View> FromRows(const ViewSpec& spec, const ViewRows& rows,
                                       const format::CaptureIndexView& index,
                                       std::shared_ptr<const void> owner,
                                       std::string_view where);
  ViewRows rows() const { return {low_, high_, size_, slots_, pieces_}; }

  std::uint64_t size() const { return size_; }
  Window At(std::uint64_t i) const;  // i < size()

  std::uint32_t captures() const {
    return static_cast<std::uint32_t>(slots_.size());
  }
  // The first window of a capture (by its place among those given) or of one
  // after it; size() when there is none.
  std::uint64_t FirstOf(std::uint32_t capture) const;
  // Whether window i > 0 begins one hop after window i - 1, in the same run.
  bool GoesOn(std::uint64_t i) const;

 private:
  class Builder;

  std::uint64_t HopOf(const ViewSlot& slot) const {
    return spec_.hop != 0 ? spec_.hop : spec_.frames * slot.stride;
  }

  std::uint32_t FramesOf(const ViewSlot& slot, std::uint64_t start) const;

  ViewSpec spec_;
  std::uint64_t low_ = 1, high_ = 1;  // frames of its windows
  std::span<const format::GopRow> gops_;
  std::span<const format::TrackRow> tracks_;
  std::span<const format::RunRow> runs_;
  std::span<const ViewSlot> slots_;
  std::span<const ViewPiece> pieces_;
  std::uint64_t size_ = 0;
  std::shared_ptr<const void> owner_;  // of the two
};

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_VIEW_H_
