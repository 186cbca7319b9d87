#include "common/plan/view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/hash/hash.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

using format::CaptureIndexView;
using format::GopRow;
using format::RunRow;
using format::TrackRow;

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kGopsPerPiece = 64;

bool Inside(std::uint64_t first, std::uint64_t count, std::size_t size) {
  return first <= size && count <= size - first;
}

// A window may start here: the first frame that decoding from the GOP's entry
// gives and the linear decode gives too.
std::uint64_t EntryFrame(const GopRow& g) {
  return g.first_frame + g.lead_count;
}
bool HasEntry(const GopRow& g) { return g.lead_count < g.frame_count; }

// Frames from a window's first to its last, both counted.
std::uint64_t SpanOf(std::uint64_t frames, std::uint64_t stride) {
  return (frames - 1) * stride + 1;
}

}  // namespace

// Adds captures one by one; keeps what the error for "nothing fits" needs.
class View::Builder {
 public:
  Builder(View& view, const CaptureIndexView& index, std::string_view where)
      : view_(view), index_(index), where_(where) {}

  absl::Status AddAll(const ViewSpec& spec, std::uint64_t low, std::uint64_t high,
                      std::span<const SelectedCapture> captures) {
    view_.spec_ = spec;
    view_.low_ = low;
    view_.high_ = high;
    view_.gops_ = index_.gops;
    view_.tracks_ = index_.tracks;
    view_.runs_ = index_.runs;
    rows_->slots.reserve(captures.size());
    for (const SelectedCapture& c : captures) PENSTOCK_RETURN_IF_ERROR(Add(c));
    view_.slots_ = rows_->slots;
    view_.pieces_ = rows_->pieces;
    view_.owner_ = rows_;
    return absl::OkStatus();
  }

  absl::Status NothingFits() const {
    const std::uint64_t fits =
        longest_ == 0 ? 0 : 1 + (longest_ - 1) / longest_stride_;
    const ViewSpec& spec = view_.spec_;
    const std::uint64_t least = spec.shortest();
    const bool aligned = spec.align == Align::kGop && fits >= least;
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = where_,
         .what = aligned
                     ? "no run holds a window that starts on a verified "
                       "entry"
                     : "the view's window is longer than every run of every "
                       "selected capture",
         .found = absl::StrCat("longest run ", longest_, " frames"),
         .expected = absl::StrCat(
             "at least ", SpanOf(least, longest_stride_), " frames (", least,
             " frames, stride ", longest_stride_, ")"),
         .action = aligned ? "use align: none, or fewer frames"
                           : absl::StrCat("use frames: ", fits,
                                          " or fewer, or a smaller stride")});
  }

 private:
  absl::Status Add(const SelectedCapture& selected) {
    PENSTOCK_RETURN_IF_ERROR(CheckRows(selected));
    const TrackRow& track = index_.tracks[selected.track];
    PENSTOCK_ASSIGN_OR_RETURN(std::uint32_t stride, StrideOf(selected, track));
    rows_->slots.push_back({selected.capture, selected.track, stride});
    for (const RunRow& run : index_.RunsOf(track)) {
      if (run.begin_frame > run.end_frame || run.end_frame > track.rows) {
        return BadRow(selected, "a run outside the track's frames");
      }
      AddRun(track, run);
    }
    return absl::OkStatus();
  }

  std::string NameOf(const SelectedCapture& s) const {
    return absl::StrCat(where_, ", capture ",
                        hash::Hex(index_.captures[s.capture].id).substr(0, 12));
  }

  absl::Status BadRow(const SelectedCapture& s, std::string what) const {
    return MakeError(absl::StatusCode::kDataLoss,
                     {.where = NameOf(s) + ", track row " +
                               absl::StrCat(s.track) + " of captures.pidx",
                      .what = std::move(what),
                      .found = "a row that points outside the index",
                      .expected = "rows as the import wrote them",
                      .action = "run `penstock verify` on the dataset"});
  }

  absl::Status CheckRows(const SelectedCapture& s) const {
    if (s.capture >= index_.captures.size() ||
        s.track >= index_.tracks.size()) {
      return MakeError(
          absl::StatusCode::kDataLoss,
          {.where = where_,
           .what = "a selected capture or track is not in captures.pidx",
           .found = absl::StrCat("capture ", s.capture, ", track ", s.track),
           .expected = absl::StrCat("captures below ", index_.captures.size(),
                                    ", tracks below ", index_.tracks.size()),
           .action = "run `penstock verify` on the dataset"});
    }
    const TrackRow& t = index_.tracks[s.track];
    if (t.capture != s.capture || t.kind != format::TrackKind::kVideo) {
      return BadRow(s, "not a video track of the capture");
    }
    if (!Inside(t.first_run, t.run_count, index_.runs.size()) ||
        !Inside(t.first_gop, t.gop_count, index_.gops.size())) {
      return BadRow(s, "runs or GOPs outside their section");
    }
    if (t.rows > (std::uint64_t{1} << 40)) return BadRow(s, "too many frames");
    return absl::OkStatus();
  }

  // Track frames from one frame of the window to the next.
  absl::StatusOr<std::uint32_t> StrideOf(const SelectedCapture& s,
                                         const TrackRow& t) const {
    const ViewSpec& spec = view_.spec_;
    if (spec.stride != 0) return static_cast<std::uint32_t>(spec.stride);
    const bool constant = (t.flags & format::kTrackConstantRate) != 0 &&
                          t.rate_num != 0 && t.rate_den != 0;
    const Wide num = Wide{t.rate_num} * spec.fps.den;
    const Wide den = Wide{t.rate_den} * spec.fps.num;
    const bool whole = constant && num % den == 0 && num / den <= kStrideMax;
    if (whole) return static_cast<std::uint32_t>(num / den);
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = NameOf(s),
         .what = constant ? "the view's fps does not divide the track's rate"
                          : "the view asks for fps, the track has no constant "
                            "rate",
         .found = constant
                      ? absl::StrCat(t.rate_num, "/", t.rate_den, " frames/s")
                      : "variable or unknown rate",
         .expected = absl::StrCat("a whole multiple of ",
                                  FormatFraction(spec.fps), " frames/s"),
         .action = "use stride instead of fps, or leave the capture out by a "
                   "filter"});
  }

  void AddRun(const TrackRow& track, const RunRow& run) {
    const std::uint64_t length = run.end_frame - run.begin_frame;
    if (length > longest_) {
      longest_ = length;
      longest_stride_ = rows_->slots.back().stride;
    }
    if (view_.spec_.align == Align::kGop) {
      AddAligned(track, run);
    } else {
      AddPlain(run);
    }
  }

  // Later windows have no more frames than earlier ones, so that those with
  // [low, high] lie together.
  void AddPlain(const RunRow& run) {
    const ViewSlot& slot = rows_->slots.back();
    const std::uint64_t length = run.end_frame - run.begin_frame;
    const std::uint64_t hop = view_.HopOf(slot);
    const auto with_at_least = [&](std::uint64_t frames) -> std::uint64_t {
      const std::uint64_t span = SpanOf(frames, slot.stride);
      return length < span ? 0 : 1 + (length - span) / hop;
    };
    const std::uint64_t longer =
        view_.high_ >= view_.spec_.frames ? 0 : with_at_least(view_.high_ + 1);
    const std::uint64_t all = with_at_least(view_.low_);
    if (all <= longer) return;
    StartPiece(run.begin_frame + longer * hop);
    view_.size_ += all - longer;
  }

  // Entries are in frame order, so that those of a run lie together.
  void AddAligned(const TrackRow& track, const RunRow& run) {
    const ViewSlot& slot = rows_->slots.back();
    const std::uint64_t span = SpanOf(view_.low_, slot.stride);
    const std::uint64_t longer = view_.high_ >= view_.spec_.frames
                                     ? UINT64_MAX
                                     : SpanOf(view_.high_ + 1, slot.stride);
    const std::uint64_t hop = view_.HopOf(slot);
    const auto gops = index_.GopsOf(track);
    auto g = std::partition_point(gops.begin(), gops.end(), [&](auto& row) {
      return EntryFrame(row) < run.begin_frame;
    });
    std::uint64_t next = run.begin_frame, piece_end = 0;
    for (; g != gops.end() && EntryFrame(*g) + span <= run.end_frame; ++g) {
      if (!HasEntry(*g) || EntryFrame(*g) < next) continue;
      next = EntryFrame(*g) + hop;
      if (run.end_frame - EntryFrame(*g) >= longer) continue;
      const auto row = static_cast<std::uint64_t>(&*g - index_.gops.data());
      if (row >= piece_end) {
        StartPiece(row);
        piece_end = row + kGopsPerPiece;
      }
      ++view_.size_;
    }
  }

  void StartPiece(std::uint64_t start) {
    rows_->pieces.push_back(
        {view_.size_, start,
         static_cast<std::uint32_t>(rows_->slots.size() - 1)});
  }

  struct Rows {
    std::vector<ViewSlot> slots;
    std::vector<ViewPiece> pieces;
  };

  View& view_;
  const std::shared_ptr<Rows> rows_ = std::make_shared<Rows>();
  const CaptureIndexView& index_;
  const std::string where_;
  std::uint64_t longest_ = 0;
  std::uint64_t longest_stride_ = 1;
};

absl::StatusOr<View> View::Create(const ViewSpec& spec,
                                  const CaptureIndexView& index,
                                  std::span<const SelectedCapture> captures,
                                  std::string_view where) {
  if (captures.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = std::string(where),
                      .what = "the source selects no capture",
                      .found = "0 captures",
                      .expected = "1 or more",
                      .action = "correct its filter, or remove the source"});
  }
  View view;
  Builder builder(view, index, where);
  PENSTOCK_RETURN_IF_ERROR(
      builder.AddAll(spec, spec.shortest(), spec.frames, captures));
  if (view.size_ == 0) return builder.NothingFits();
  return view;
}

absl::StatusOr<View> View::CreateOf(const ViewSpec& spec, std::uint64_t low,
                                    std::uint64_t high,
                                    const CaptureIndexView& index,
                                    std::span<const SelectedCapture> captures,
                                    std::string_view where) {
  View view;
  Builder builder(view, index, where);
  PENSTOCK_RETURN_IF_ERROR(builder.AddAll(spec, low, high, captures));
  return view;
}

absl::StatusOr<View> View::FromRows(const ViewSpec& spec, const ViewRows& rows,
                                    const CaptureIndexView& index,
                                    std::shared_ptr<const void> owner,
                                    std::string_view where) {
  const auto bad = [&](const char* what, std::size_t row) {
    return MakeError(absl::StatusCode::kDataLoss,
                     {.where = std::string(where),
                      .what = what,
                      .found = absl::StrCat("row ", row),
                      .expected = "rows as View::Create makes them",
                      .action = "select the captures again"});
  };
  const std::uint64_t starts =
      spec.align == Align::kGop ? index.gops.size() : std::uint64_t{1} << 40;
  if (rows.low < 1 || rows.low > rows.high || rows.high > spec.frames) {
    return bad("frames of windows that the view does not have", 0);
  }
  for (std::size_t i = 0; i < rows.slots.size(); ++i) {
    const ViewSlot& s = rows.slots[i];
    if (s.capture >= index.captures.size() || s.track >= index.tracks.size() ||
        s.stride < 1 || s.stride > kStrideMax) {
      return bad("a capture or track that is not in the index", i);
    }
  }
  if (rows.pieces.empty() != (rows.size == 0)) return bad("windows without pieces", 0);
  std::uint64_t next = 0;  // at least so many windows come before
  std::uint32_t slot = 0;  // of the piece before
  for (std::size_t i = 0; i < rows.pieces.size(); ++i) {
    const ViewPiece& p = rows.pieces[i];
    if (p.first < next || (i == 0 && p.first != 0) || p.first >= rows.size ||
        p.start >= starts || p.slot < slot || p.slot >= rows.slots.size() ||
        p.reserved != 0) {
      return bad("a piece outside the windows, the captures or the index", i);
    }
    next = p.first + 1;
    slot = p.slot;
  }
  View view;
  view.spec_ = spec;
  view.low_ = rows.low;
  view.high_ = rows.high;
  view.gops_ = index.gops;
  view.tracks_ = index.tracks;
  view.runs_ = index.runs;
  view.slots_ = rows.slots;
  view.pieces_ = rows.pieces;
  view.size_ = rows.size;
  view.owner_ = std::move(owner);
  return view;
}

std::uint32_t View::FramesOf(const ViewSlot& slot, std::uint64_t start) const {
  if (low_ == spec_.frames) return static_cast<std::uint32_t>(spec_.frames);
  const TrackRow& track = tracks_[slot.track];
  const auto runs = runs_.subspan(track.first_run, track.run_count);
  const auto run = std::prev(std::upper_bound(
      runs.begin(), runs.end(), start,
      [](std::uint64_t at, const RunRow& r) { return at < r.begin_frame; }));
  return static_cast<std::uint32_t>(std::min(
      spec_.frames, 1 + (run->end_frame - 1 - start) / slot.stride));
}

Window View::At(std::uint64_t i) const {
  auto piece = std::prev(std::upper_bound(
      pieces_.begin(), pieces_.end(), i,
      [](std::uint64_t at, const ViewPiece& p) { return at < p.first; }));
  const ViewSlot& slot = slots_[piece->slot];
  Window w{slot.capture, slot.track, 0, slot.stride, 1};
  std::uint64_t left = i - piece->first;
  const std::uint64_t hop = HopOf(slot);
  if (spec_.align == Align::kNone) {
    w.start_frame = piece->start + left * hop;
    w.frames = FramesOf(slot, w.start_frame);
    return w;
  }
  // The same walk as in AddAligned, which counted `left` more windows here.
  std::uint64_t row = piece->start;
  while (left > 0) {
    const std::uint64_t next = EntryFrame(gops_[row]) + hop;
    do {
      ++row;
    } while (row + 1 < gops_.size() &&
             (!HasEntry(gops_[row]) || EntryFrame(gops_[row]) < next));
    --left;
  }
  w.start_frame = EntryFrame(gops_[row]);
  w.frames = FramesOf(slot, w.start_frame);
  return w;
}

std::uint64_t View::FirstOf(std::uint32_t capture) const {
  const auto at = std::lower_bound(
      pieces_.begin(), pieces_.end(), capture,
      [](const ViewPiece& p, std::uint32_t c) { return p.slot < c; });
  return at == pieces_.end() ? size_ : at->first;
}

bool View::GoesOn(std::uint64_t i) const {
  const Window before = At(i - 1), now = At(i);
  const std::uint64_t hop =
      spec_.hop != 0 ? spec_.hop : spec_.frames * now.stride;
  if (now.track != before.track ||
      now.start_frame != before.start_frame + hop) {
    return false;
  }
  const auto& track = tracks_[now.track];
  const auto runs = runs_.subspan(track.first_run, track.run_count);
  return std::none_of(runs.begin(), runs.end(), [&](const RunRow& r) {
    return r.begin_frame > before.start_frame &&
           r.begin_frame <= now.start_frame;
  });
}

}  // namespace penstock::plan
