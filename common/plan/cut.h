#ifndef PENSTOCK_COMMON_PLAN_CUT_H_
#define PENSTOCK_COMMON_PLAN_CUT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/types/ids.h"

// The cut of a global batch over data-parallel ranks. Strided: item i of the
// batch goes to rank i mod world, the order kept.
namespace penstock::plan {

// Whether `world` ranks can share a global batch in whole microbatches (0: one
// microbatch, the whole share).
//
// kInvalidArgument: no; names the nearest batch sizes and worlds that work
absl::Status CheckCut(std::uint64_t global_batch, std::uint64_t microbatch,
                      std::uint32_t world);

// Indices in the global batch of one rank's items, in its order.
//
// kInvalidArgument: as CheckCut
// kOutOfRange:      rank >= world
absl::StatusOr<std::vector<std::uint64_t>> ItemsOfRank(
    std::uint64_t global_batch, std::uint64_t microbatch, std::uint32_t world,
    Rank rank);

// The same for every rank.
absl::StatusOr<std::vector<std::vector<std::uint64_t>>> AssignToRanks(
    std::uint64_t global_batch, std::uint64_t microbatch, std::uint32_t world);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_CUT_H_
