#ifndef PENSTOCK_COMMON_PLAN_MIXTURE_H_
#define PENSTOCK_COMMON_PLAN_MIXTURE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/plan/weights.h"

namespace penstock::plan {

// Which source comes at which position, for ever: windowed earliest deadline.
//
// Of the Q = kMixturePeriod slots of a period a source with quota q gets q: its
// slot j may run from floor(j·Q/q) and must run before ceil((j+1)·Q/q). At each
// position the released slot with the earliest deadline runs, at equal
// deadlines that of the earlier source. Every prefix of N positions then holds
// within 1 of q/Q·N of each source, any window within 2 (README.md, proof).
//
// Threading: immutable, any thread. Bounds: 640 KiB; every call O(1) but
//   CountBefore, O(log Q).
class Mixture {
 public:
  struct Slot {
    std::uint32_t source;
    std::uint64_t rank;  // occurrences of the source before this one
    friend bool operator==(const Slot&, const Slot&) = default;
  };

  // `quotas` add up to kMixturePeriod (RoundWeights).
  explicit Mixture(std::span<const std::uint32_t> quotas);

  Slot At(std::uint64_t position) const {
    const std::uint64_t period = position / kMixturePeriod;
    const std::uint32_t at = position % kMixturePeriod;
    const std::uint32_t source = source_[at];
    return {source, period * quotas_[source] + rank_[at]};
  }

  // Periods whose positions are counted: past them is past kStepMax for any batch.
  static constexpr std::uint64_t kPeriodsMax = std::uint64_t{1} << 46;

  // The position of an occurrence; the source's quota is not 0, and rank /
  // quota below kPeriodsMax.
  std::uint64_t PositionOf(std::uint32_t source, std::uint64_t rank) const;

  // Occurrences of the source in the positions [0, position).
  std::uint64_t CountBefore(std::uint32_t source, std::uint64_t position) const;

  std::uint32_t quota(std::uint32_t source) const { return quotas_[source]; }

 private:
  std::vector<std::uint32_t> quotas_;
  std::vector<std::uint16_t> source_;    // by position in the period
  std::vector<std::uint32_t> rank_;      // by position in the period
  std::vector<std::uint32_t> position_;  // by source, then rank in the period
  std::vector<std::uint32_t> first_;     // of each source, in position_
};

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_MIXTURE_H_
