#include "common/format/input_bins.h"

#include <set>

namespace penstock::format {
namespace {

bool IsHoldable(EventKind kind) {
  return kind == EventKind::kKey || kind == EventKind::kButton ||
         kind == EventKind::kPadButton;
}

class Binner {
 public:
  explicit Binner(std::span<const std::int64_t> boundaries)
      : boundaries_(boundaries), out_(boundaries.size() - 1) {}

  void Hold(const EventRow& row) {
    if (IsHoldable(row.kind)) held_.insert(row.code);
  }

  void Take(const EventRow& row) {
    Advance(row.t_ns);
    const bool inside = at_ > 0 && at_ <= out_.size();
    InputInterval* now = inside ? &out_[at_ - 1] : nullptr;
    if (now != nullptr) ++now->events;
    if (IsHoldable(row.kind)) {
      if (row.value != 0) {
        held_.insert(row.code);
        if (now != nullptr) now->keys[row.code] |= kPressed | kHeldAnyTime;
      } else {
        held_.erase(row.code);
        if (now != nullptr) now->keys[row.code] |= kReleased;
      }
    } else if (now != nullptr && row.kind == EventKind::kMouseRel) {
      now->dx += row.value;
      now->dy += row.value_y;
    } else if (now != nullptr && row.kind == EventKind::kWheel) {
      now->wheel += row.value;
    }
  }

  std::vector<InputInterval> Finish() {
    Advance(INT64_MAX);
    return std::move(out_);
  }

 private:
  // Closes intervals that end at or before t and opens the ones that begin.
  // at_ is the number of boundaries passed.
  void Advance(std::int64_t t) {
    while (at_ < boundaries_.size() &&
           (boundaries_[at_] <= t || t == INT64_MAX)) {
      if (at_ > 0) {
        for (auto code : held_) out_[at_ - 1].keys[code] |= kHeldAtEnd;
      }
      if (at_ < out_.size()) {
        for (auto code : held_) out_[at_].keys[code] |= kHeldAnyTime;
      }
      ++at_;
    }
  }

  std::span<const std::int64_t> boundaries_;
  std::vector<InputInterval> out_;
  std::set<std::uint32_t> held_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<InputInterval> BinInputs(std::span<const BlockView> blocks,
                                     std::span<const std::int64_t> boundaries) {
  if (boundaries.size() < 2) return {};
  Binner binner(boundaries);
  bool first = true;
  for (const BlockView& block : blocks) {
    for (const EventRow& row : block.Events()) {
      if ((row.flags & kEventHeld) != 0) {
        if (first) binner.Hold(row);
        continue;
      }
      binner.Take(row);
    }
    first = false;
  }
  return binner.Finish();
}

}  // namespace penstock::format
