#ifndef PENSTOCK_COMMON_PLAN_PLANNER_H_
#define PENSTOCK_COMMON_PLAN_PLANNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/cost.h"
#include "common/plan/cut.h"
#include "common/plan/feed_spec.h"
#include "common/plan/pack_plan.h"
#include "common/plan/sample.h"
#include "common/plan/schedule.h"
#include "common/plan/stream.h"

namespace penstock::plan {

// The units and samples of any step, computed directly.
//
// With packing the units are packs, and calls take a PackPlan of this planner
// (MakePacks), which they may make longer; without it they take none.
//
// Pure: equal feeds and indexes give equal plans on every machine and build;
//   nothing depends on the world, on the steps asked for before, on time.
// Threading: immutable, any thread; a PackPlan one at a time. Ownership: the capture
//   indexes outlive it.
// Bounds: what Schedule and View say; PlanStep is O(batch · log runs) and
//   O(strata), at any step (with packing once its packs are counted).
class Planner {
 public:
  // `feed` has its sources sorted; `sources` has one entry for each.
  //
  // kInvalidArgument: a fault of the feed (CheckFeed), an unsorted feed; a
  //                   source without windows; a bucket that nothing fits; less data
  //                   than one global batch
  // kDataLoss:        a damaged capture index
  static absl::StatusOr<Planner> Create(FeedSpec feed,
                                        std::vector<SourceInput> sources);

  const FeedSpec& feed() const { return inputs_->feed; }
  const std::vector<SourceInput>& inputs() const { return inputs_->sources; }
  bool packing() const { return feed().packing.tokens != 0; }
  const std::shared_ptr<const PlanInputs>& plan_inputs() const { return inputs_; }
  // A new one, with nothing counted. Errors: as Create
  absl::StatusOr<PackPlan> MakePacks() const { return PackPlan::Create(inputs_); }

  // In training; with packing that of the beginning, in samples.
  const Schedule& schedule() const { return stream_->schedule(); }
  const std::shared_ptr<const Stream>& stream() const { return stream_; }
  // Samples of a source in the view it is first drawn with; 0: never drawn.
  std::uint64_t SourceSize(std::uint32_t source) const;
  // The stratum's label; empty without strata.
  const std::string& StratumOf(const Sample& sample, const PackPlan* packs = nullptr) const;

  // Steps until the data ends, none when it never does or, with packing, is not
  // known to. The one rule for all ranks: the data ends after the last whole step
  // before which no source (with `renormalise`: before which not every source) has
  // been drawn beyond its limit; in evaluation after the step with the last sample.
  std::optional<std::uint64_t> TotalSteps(const PackPlan* packs = nullptr) const;
  // Of the feed before skipped steps: the step counted with them.
  std::uint64_t DataStep(Step step) const;
  // Units of the step: its global batch.
  std::uint64_t UnitsOf(Step step) const;
  // Units that come before the step, those of skipped steps too.
  std::uint64_t UnitsBeforeStep(Step step) const;
  // Every number of units that a rank has at some step, ascending.
  // kInvalidArgument: the ranks cannot share a global batch of the feed
  absl::StatusOr<std::vector<std::uint64_t>> RankUnits(
      const DataRanks& ranks) const;

  // kOutOfRange: at or past TotalSteps(), or past kStepMax. With packing also
  // kInvalidArgument: as PackOne
  absl::StatusOr<GlobalBatch> PlanStep(Step step, PackPlan* packs = nullptr) const;

  // Predicted cost of each unit, by the feed's formula.
  std::vector<std::uint64_t> CostsOf(const GlobalBatch& batch) const;
  // The batch's units over data ranks, by the feed's rule. kInvalidArgument: as
  // CutBatch
  absl::StatusOr<BatchCut> Cut(const GlobalBatch& batch,
                               const DataRanks& ranks) const;
  // The node of each unit: that of its first sample.
  std::vector<std::uint32_t> HomesOf(const GlobalBatch& batch,
                                     std::uint32_t nodes) const;

  // What the mixture realised in the steps [0, step): units of each source, with
  // packing samples. Errors: with packing, as PlanStep
  absl::StatusOr<std::vector<std::uint64_t>> CountsBefore(
      Step step, PackPlan* packs = nullptr) const;
  // And what the effective weights asked for; empty in evaluation.
  absl::StatusOr<std::vector<double>> AskedBefore(Step step,
                                                  PackPlan* packs = nullptr) const;

 private:
  explicit Planner(std::shared_ptr<const PlanInputs> inputs)
      : inputs_(std::move(inputs)) {}
  absl::Status CheckBuckets() const;
  absl::Status CheckEnd() const;
  absl::Status Ended(Step step, std::uint64_t end) const;
  template <typename Before>
  auto Delivered(Step step, const Before& before) const;

  std::shared_ptr<const PlanInputs> inputs_;
  std::shared_ptr<const Stream> stream_;
};

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_PLANNER_H_
