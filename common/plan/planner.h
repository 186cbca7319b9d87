#ifndef PENSTOCK_COMMON_PLAN_PLANNER_H_
#define PENSTOCK_COMMON_PLAN_PLANNER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/feed_spec.h"
#include "common/plan/mixture.h"
#include "common/plan/sample.h"
#include "common/plan/view.h"

namespace penstock::plan {

// What a source is planned from.
struct SourceInput {
  format::CaptureIndexView index;
  std::vector<SelectedCapture> captures;  // in the order of the selection
};

// The samples of any step, computed directly.
//
// Pure: equal feeds and indexes give equal plans on every machine and build;
//   nothing depends on the world, on the steps asked for before, on time.
// Threading: immutable, any thread. Ownership: the capture indexes outlive it.
// Bounds: 640 KiB for the mixture and what View says for each source; PlanStep
//   is O(batch · log runs), at any step.
class Planner {
 public:
  // `feed` has its sources sorted; `sources` has one entry for each.
  //
  // kInvalidArgument: a fault of the feed (CheckFeed), an unsorted feed; a
  //                   source without windows; less data than one global batch
  // kDataLoss:        a damaged capture index
  static absl::StatusOr<Planner> Create(FeedSpec feed,
                                        std::vector<SourceInput> sources);

  const FeedSpec& feed() const { return feed_; }
  const Mixture& mixture() const { return mixture_; }
  // Windows of a source; 0 for a source that is never drawn.
  std::uint64_t SourceSize(std::uint32_t source) const;

  // Steps until the data ends, none when it never does (epochs: 0). The one
  // rule for all ranks: the data ends after the last whole step before which no
  // source has been drawn more than `epochs` times its size.
  std::optional<std::uint64_t> TotalSteps() const { return total_steps_; }

  // kOutOfRange: at or past TotalSteps(), or past kStepMax
  absl::StatusOr<GlobalBatch> PlanStep(Step step) const;

  // Samples of each source in the steps [0, step): what the mixture realised.
  std::vector<std::uint64_t> CountsBefore(Step step) const;

 private:
  class Walk;

  Planner(FeedSpec feed, Mixture mixture)
      : feed_(std::move(feed)), mixture_(std::move(mixture)) {}
  std::optional<std::uint64_t> ComputeTotalSteps() const;

  FeedSpec feed_;
  Mixture mixture_;
  std::vector<std::optional<View>> views_;  // none: never drawn
  std::optional<std::uint64_t> total_steps_;
};

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_PLANNER_H_
