#ifndef PENSTOCK_COMMON_PLAN_PACK_PLAN_H_
#define PENSTOCK_COMMON_PLAN_PACK_PLAN_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/pack.h"
#include "common/plan/stream.h"

namespace penstock::plan {

// Samples of the stream at [begin, end), packed together.
struct PackWindow {
  std::uint64_t number = 0;
  std::uint64_t begin = 0, end = 0;
};

struct PackedWindow {
  PackWindow window;
  std::vector<Sample> samples;  // cut to the budget
  std::vector<std::vector<std::uint32_t>> packs;  // of samples, as delivered
};

// Limits of one pack: frames as the feed says, or what the budget has room for.
PackLimits PackLimitsOf(const FeedSpec& feed, const CostFormula& length);

// The packs of one window, alone.
//
// kInvalidArgument: a sample that is longer than the budget, when the feed says
//                   error or one frame of it is (names it)
absl::StatusOr<PackedWindow> PackOne(const PlanInputs& inputs, const Stream& stream,
                                     const PackWindow& window);

// Share of the budget that the packs of a window fill.
double FillOf(const FeedSpec& feed, const PackedWindow& packed);

// The packs of a feed, one after the other: windows of W samples of its stream, and
// how many packs each of them gives. Those numbers (the pack index) tell where a
// pack lies; they are found window by window, or were found before (Append).
//
// A stage begins at the first window whose packs all come at or after its step; the
// window before is then not cut short.
//
// Pure: what was asked for before changes what is known, never an answer.
// Threading: one thread at a time. Bounds: 4 bytes a window, 24 every 64 windows,
//   one packed window; Read is O(packs' windows · W log W) once they are counted.
class PackPlan {
 public:
  // kInvalidArgument: as Stream::Create, for every stage
  static absl::StatusOr<PackPlan> Create(std::shared_ptr<const PlanInputs> inputs);

  std::uint64_t windows() const { return counts_.size(); }
  std::uint64_t packs() const { return packs_; }
  bool ended() const { return ended_; }  // there are no more windows
  const std::vector<std::uint32_t>& counts() const { return counts_; }
  const std::shared_ptr<const Stream>& stream() const { return stream_; }

  // The next windows to count, at most `count`: with the mixture that holds now.
  std::vector<PackWindow> Next(std::size_t count) const;
  // Takes the packs of the windows that come next; returns how many windows it
  // took: where a stage begins, the counts of before are no good. `known`: they are
  // those of the windows as they are, stages and all.
  absl::StatusOr<std::size_t> Append(std::span<const std::uint32_t> counts,
                                     bool known = false);
  // Counts windows until `packs` packs are known or the data ends.
  absl::Status Reach(std::uint64_t packs);

  // Appends the packs [begin, end), as far as there are any, with their samples.
  absl::Status Read(std::uint64_t begin, std::uint64_t end,
                    std::vector<Sample>* samples, std::vector<Unit>* units);
  // Samples of each source in the packs [0, pack), which are counted.
  absl::StatusOr<std::vector<std::uint64_t>> CountsBefore(std::uint64_t pack);

 private:
  struct Anchor {
    std::uint64_t position, packs;  // at window 64·i
  };

  explicit PackPlan(std::shared_ptr<const PlanInputs> inputs)
      : inputs_(std::move(inputs)) {}
  PackWindow WindowAt(std::uint64_t number, std::uint64_t position) const;
  // Enters the stages that begin at the next window.
  absl::Status EnterStages();
  // The window that holds a counted pack, and how many packs come before it.
  std::pair<PackWindow, std::uint64_t> Find(std::uint64_t pack) const;
  absl::Status Load(const PackWindow& window);

  std::shared_ptr<const PlanInputs> inputs_;
  std::shared_ptr<const Stream> stream_;
  std::vector<std::uint64_t> starts_;  // positions of the stages that began
  std::vector<std::uint32_t> counts_;
  std::vector<Anchor> anchors_;
  std::uint64_t position_ = 0, packs_ = 0;
  bool ended_ = false;
  PackedWindow loaded_;  // number UINT64_MAX: none
};

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_PACK_PLAN_H_
