#ifndef PENSTOCK_COMMON_PLAN_STREAM_H_
#define PENSTOCK_COMMON_PLAN_STREAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/cost.h"
#include "common/plan/feed_spec.h"
#include "common/plan/sample.h"
#include "common/plan/schedule.h"

namespace penstock::plan {

// A checked feed with its formulas and what its sources are planned from.
struct PlanInputs {
  FeedSpec feed;  // sources sorted by name
  std::vector<SourceInput> sources;  // one for each
  CostFormula cost;
  std::optional<CostFormula> length;
};

// The units that a feed draws, one after the other: samples, or with buckets
// microbatches. Packs are made of it (pack_plan.h).
//
// Threading: immutable, any thread.
// Bounds: what Schedule says; Read is O(log segments + strata + samples · log runs).
class Stream {
 public:
  // Training lays the stages out over data steps; with packing over positions, of
  // which `starts` has those of the first stages (of all others it knows nothing),
  // and takes from `before` what they have in common. Evaluation knows no stages.
  //
  // kInvalidArgument: as Schedule::Create, Lineage::Create
  static absl::StatusOr<std::shared_ptr<const Stream>> Create(
      std::shared_ptr<const PlanInputs> inputs,
      std::span<const std::uint64_t> starts = {}, const Stream* before = nullptr);

  // In training only.
  const Schedule& schedule() const { return schedule_; }
  // A source under one view each, in the order in which they were first drawn.
  const std::vector<std::shared_ptr<const Lineage>>& lineages() const {
    return evaluated_.empty() ? schedule_.lineages() : evaluated_;
  }
  // Units until the data ends; none: never. For plain training the schedule says
  // it in steps.
  std::optional<std::uint64_t> total() const { return total_; }
  // The first position at or after `position` + 1 where another mixture begins, or
  // the data ends.
  std::uint64_t NextBreak(std::uint64_t position) const;

  // Appends the units at [begin, end) and their samples; they are there.
  void Read(std::uint64_t begin, std::uint64_t end, std::vector<Sample>* samples,
            std::vector<Unit>* units) const;

  // Units of each source among those at [0, position); evaluation and packing.
  std::vector<std::uint64_t> CountsBefore(std::uint64_t position) const;

 private:
  class Walk;

  // Evaluation: the units of one bucket of a lineage.
  struct Run {
    std::uint64_t first = 0;  // position of its first unit
    std::uint32_t source = 0, lineage = 0, bucket = 0;
  };

  absl::Status LayEvaluation();

  std::shared_ptr<const PlanInputs> inputs_;
  Schedule schedule_;
  std::vector<std::shared_ptr<const Lineage>> evaluated_;
  std::vector<Run> runs_;
  std::optional<std::uint64_t> total_;
};

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_STREAM_H_
