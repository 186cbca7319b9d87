#ifndef PENSTOCK_COMMON_PLAN_DATA_RANKS_H_
#define PENSTOCK_COMMON_PLAN_DATA_RANKS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/decimal.h"

// The ranks that share a global batch, as a run declares them.
namespace penstock::plan {

// Data ranks on nodes: rank r is on node r div ranks_per_node.
struct DataRanks {
  std::uint32_t world = 1;
  std::uint32_t ranks_per_node = 0;  // 0: all on one
  std::vector<Decimal> speeds = {};  // one each, positive; empty: all alike

  std::uint32_t NodeOf(std::uint32_t rank) const {
    return ranks_per_node == 0 ? 0 : rank / ranks_per_node;
  }
  std::uint32_t nodes() const { return world == 0 ? 1 : NodeOf(world - 1) + 1; }
};

// Speeds of the ranks of a world: "1, 1, 0.5". None when the text is empty or when
// all are alike.
//
// kInvalidArgument: another number of them than `world`, not a decimal above 0
absl::StatusOr<std::vector<Decimal>> ParseSpeeds(std::string_view text,
                                                 std::uint32_t world);

// The shortest text with the same speeds: "1,1,0.5".
std::string FormatSpeeds(std::span<const Decimal> speeds);

// How many of `microbatches` each rank gets: in proportion to its speed, by largest
// remainder (what is given less what is due), at equal ones the earlier rank; at
// least one each where there are as many. They add up.
//
// Bounds: fewer than 2^40 microbatches, at most 2^20 speeds.
std::vector<std::uint64_t> MicrobatchesBySpeed(std::uint64_t microbatches,
                                               std::span<const Decimal> speeds);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_DATA_RANKS_H_
