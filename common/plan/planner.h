#ifndef PENSTOCK_COMMON_PLAN_PLANNER_H_
#define PENSTOCK_COMMON_PLAN_PLANNER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/cost.h"
#include "common/plan/cut.h"
#include "common/plan/feed_spec.h"
#include "common/plan/sample.h"
#include "common/plan/schedule.h"

namespace penstock::plan {

// The samples of any step, computed directly.
//
// Pure: equal feeds and indexes give equal plans on every machine and build;
//   nothing depends on the world, on the steps asked for before, on time.
// Threading: immutable, any thread. Ownership: the capture indexes outlive it.
// Bounds: what Schedule and View say; PlanStep is O(batch · log runs) and
//   O(strata), at any step.
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
  const std::vector<SourceInput>& inputs() const { return inputs_; }
  // In training only.
  const Schedule& schedule() const { return schedule_; }
  // Windows of a source in the view it is first drawn with; 0: never drawn.
  std::uint64_t SourceSize(std::uint32_t source) const;
  // The stratum's label; empty without strata.
  const std::string& StratumOf(const Sample& sample) const;

  // Steps until the data ends, none when it never does. The one rule for all
  // ranks: the data ends after the last whole step before which no source (with
  // `renormalise`: before which not every source) has been drawn beyond its
  // limit; in evaluation after the step with the last sample.
  std::optional<std::uint64_t> TotalSteps() const { return total_steps_; }
  // Of the feed before skipped steps: the step counted with them.
  std::uint64_t DataStep(Step step) const;
  // Units of the step: its global batch.
  std::uint64_t UnitsOf(Step step) const;
  // Every number of units that a rank has at some step, ascending.
  // kInvalidArgument: the ranks cannot share a global batch of the feed
  absl::StatusOr<std::vector<std::uint64_t>> RankUnits(std::uint32_t world) const;

  // kOutOfRange: at or past TotalSteps(), or past kStepMax
  absl::StatusOr<GlobalBatch> PlanStep(Step step) const;

  // Predicted cost of each sample, by the feed's formula.
  std::vector<std::uint64_t> CostsOf(const GlobalBatch& batch) const;
  // The batch over data ranks, by the feed's rule. kInvalidArgument: as CutBatch
  absl::StatusOr<BatchCut> Cut(const GlobalBatch& batch, std::uint32_t world) const;

  // Samples of each source in the steps [0, step): what the mixture realised.
  std::vector<std::uint64_t> CountsBefore(Step step) const;
  // And what the effective weights asked for; empty in evaluation.
  std::vector<double> AskedBefore(Step step) const;

 private:
  class Walk;

  explicit Planner(FeedSpec feed, std::vector<SourceInput> inputs)
      : feed_(std::move(feed)), inputs_(std::move(inputs)) {}
  template <typename Before>
  auto Delivered(Step step, const Before& before) const;
  absl::Status LayTraining();
  absl::Status LayEvaluation();
  const std::vector<Lineage>& lineages() const {
    return evaluated_.empty() ? schedule_.lineages() : evaluated_;
  }

  FeedSpec feed_;
  std::vector<SourceInput> inputs_;
  CostFormula cost_;
  Schedule schedule_;
  // Evaluation: a lineage for each source that is not left out, which source,
  // and how many samples come before it; one more entry, of all.
  std::vector<Lineage> evaluated_;
  std::vector<std::uint32_t> evaluated_source_;
  std::vector<std::uint64_t> evaluated_before_;
  std::optional<std::uint64_t> total_steps_;
};

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_PLANNER_H_
