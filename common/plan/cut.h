#ifndef PENSTOCK_COMMON_PLAN_CUT_H_
#define PENSTOCK_COMMON_PLAN_CUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/data_ranks.h"
#include "common/plan/feed_spec.h"

// The cut of a global batch over data-parallel ranks.
namespace penstock::plan {

struct CutRule {
  CutMode mode = CutMode::kStrided;
  std::uint64_t microbatch = 0;  // 0: one microbatch, the whole share
  Uneven uneven = Uneven::kError;
  std::uint64_t lanes = 0;  // that ranks divide; 0: none
};

// The rule of a feed; evaluation always masks.
CutRule CutRuleOf(const FeedSpec& feed);

// Units that every rank runs, masked ones included: whole microbatches.
//
// kInvalidArgument: the ranks cannot share the batch and nothing may be masked,
//                   or cannot share the lanes; names what works. Speeds with
//                   lanes, or without masks
absl::StatusOr<std::uint64_t> UnitsOfRank(const CutRule& rule,
                                          std::uint64_t global_batch,
                                          const DataRanks& ranks);

// How many of the first `there` units each rank gets.
std::vector<std::uint64_t> RoomOfRanks(const CutRule& rule,
                                       std::uint64_t global_batch,
                                       std::uint64_t there,
                                       const DataRanks& ranks);

// What each rank gets of one step.
struct BatchCut {
  std::uint64_t units = 0;  // of every rank, masked ones included
  // By rank, in its order: indices of its units in the batch; the places after
  // them are masked.
  std::vector<std::vector<std::uint64_t>> ranks;
};

// Cuts a batch of `global_batch` units of which the first `there` are there.
// Balanced: `costs` has the cost of each; local: `homes` the node of each.
// kInvalidArgument: as UnitsOfRank
absl::StatusOr<BatchCut> CutBatch(const CutRule& rule,
                                  std::uint64_t global_batch,
                                  std::uint64_t there, const DataRanks& ranks,
                                  std::span<const std::uint64_t> costs = {},
                                  std::span<const std::uint32_t> homes = {});

// What a rank multiplies the mean loss of its own samples (or tokens) with, so
// that the mean over ranks is the mean over all: world · local / global.
double LossScale(std::uint64_t local, std::uint64_t global, std::uint32_t world);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_CUT_H_
