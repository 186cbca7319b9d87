#ifndef PENSTOCK_COMMON_PLAN_SCHEDULE_H_
#define PENSTOCK_COMMON_PLAN_SCHEDULE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/feed_spec.h"
#include "common/plan/lanes.h"
#include "common/plan/lineage.h"
#include "common/plan/mixture.h"
#include "common/plan/weights.h"

namespace penstock::plan {

struct PlanInputs;

// Data steps with one mixture: a stage of the feed, or what is left of one when
// a source is exhausted. Laid out in units its steps are units.
struct Segment {
  // Where a source stands when the segment begins.
  struct Start {
    std::int32_t lineage = -1;  // none: never drawn here
    std::uint64_t draws = 0;    // of the lineage, before
    std::uint64_t epoch = 0;    // that the lineage's pass 0 is
  };
  std::uint64_t first_step = 0, global_batch = 1;
  std::uint64_t first_position = 0;  // units before it
  std::shared_ptr<const Mixture> mixture;
  std::vector<Start> starts;  // by source
  std::shared_ptr<const LaneDeal> deal;  // with lanes: instead of the mixture
  std::uint64_t chunks = 0;              // of each lane of the deal, before

  // Units of a source among the segment's first.
  std::uint64_t CountBefore(std::uint32_t source, std::uint64_t units) const {
    return deal ? deal->CountBefore(source, units)
                : mixture->CountBefore(source, units);
  }
  double ShareOf(std::uint32_t source) const {
    return deal ? static_cast<double>(deal->LanesOf(source)) / deal->size()
                : static_cast<double>(mixture->quota(source)) / kMixturePeriod;
  }
};

// The stages of a feed laid out over data steps.
//
// Threading: immutable, any thread. Bounds: kSegmentsMax segments, 640 KiB each.
class Schedule {
 public:
  static constexpr std::size_t kSegmentsMax = 512;

  // In data steps.
  //
  // kInvalidArgument: as Lineage::Create; too many segments; weights of a stage
  //                   that are all zero
  static absl::StatusOr<Schedule> Create(const PlanInputs& inputs);
  // In units, of which `starts` has those where the first stages begin; it ends
  // before the others. Takes lineages from `before` where it has them.
  static absl::StatusOr<Schedule> CreateInUnits(const PlanInputs& inputs,
                                                std::span<const std::uint64_t> starts,
                                                const Schedule* before);

  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<std::shared_ptr<const Lineage>>& lineages() const {
    return lineages_;
  }
  // Source and view of each lineage.
  const std::vector<std::pair<std::uint32_t, ViewSpec>>& views() const {
    return views_;
  }
  // Data steps until the data ends; none: never.
  std::optional<std::uint64_t> total() const { return total_; }

  const Segment& At(std::uint64_t data_step) const;
  // Units of each source in the data steps [0, data_step).
  std::vector<std::uint64_t> CountsBefore(std::uint64_t data_step) const;
  // What the effective weights ask for, in units: CountsBefore is within 1 of it
  // for each segment.
  std::vector<double> AskedBefore(std::uint64_t data_step) const;

 private:
  class Builder;

  // Calls `count(segment, units)` for the part of each segment before a step.
  template <typename Count>
  void EachBefore(std::uint64_t data_step, const Count& count) const {
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const Segment& g = segments_[i];
      if (g.first_step >= data_step) return;
      const std::uint64_t end =
          i + 1 < segments_.size()
              ? std::min(data_step, segments_[i + 1].first_step)
              : data_step;
      count(g, (end - g.first_step) * g.global_batch);
    }
  }

  std::vector<Segment> segments_;  // by first_step; the first is 0
  std::vector<std::shared_ptr<const Lineage>> lineages_;
  std::vector<std::pair<std::uint32_t, ViewSpec>> views_;  // of the lineages
  std::optional<std::uint64_t> total_;
};

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_SCHEDULE_H_
