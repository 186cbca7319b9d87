#ifndef PENSTOCK_COMMON_PLAN_LOCAL_CUT_H_
#define PENSTOCK_COMMON_PLAN_LOCAL_CUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/format/capture_index.h"
#include "common/plan/data_ranks.h"
#include "common/plan/sample.h"

// The cut that keeps units on the nodes where their bytes are wanted again.
namespace penstock::plan {

// The home of a sample: of the extent that holds its first frame. The node with
// the highest draw, so that another number of nodes moves as few extents as can
// be. Of the data alone, so that all jobs of a cluster have the same homes.
std::uint32_t HomeOf(const Sample& sample,
                     const format::CaptureIndexView& index,
                     std::uint32_t nodes);

// The rank of each unit, by its home; rank r gets room[r] of them, which add
// up. In global order: units go home while their node has room, then what is
// left goes to the first node with room; on a node to its ranks in turn.
std::vector<std::uint32_t> LocalRanks(std::span<const std::uint32_t> homes,
                                      const DataRanks& ranks,
                                      std::vector<std::uint64_t> room);

// Share of the units that are on their home node.
double HomeShare(std::span<const std::uint32_t> homes,
                 std::span<const std::uint32_t> ranks, const DataRanks& world);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_LOCAL_CUT_H_
