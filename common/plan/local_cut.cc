#include "common/plan/local_cut.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/plan/cost.h"
#include "common/random/prf.h"

namespace penstock::plan {
namespace {

// The number of the extent in its capture; without extents of the GOP in its track.
std::uint64_t ExtentOf(const Sample& s, const format::CaptureIndexView& index) {
  const auto gops = GopsOf(s, index);
  if (gops.empty()) return 0;
  const format::GopRow& gop = gops.front();
  const format::CaptureRow& capture = index.captures[s.capture];
  if (capture.extent_count == 0 ||
      capture.first_extent + capture.extent_count > index.extents.size()) {
    return static_cast<std::uint64_t>(&gop - index.gops.data()) -
           index.tracks[s.track].first_gop;
  }
  const auto extents =
      index.extents.subspan(capture.first_extent, capture.extent_count);
  const auto after = std::partition_point(
      extents.begin(), extents.end(), [&](const format::ExtentRow& e) {
        return std::pair(e.shard, e.offset) <= std::pair(gop.shard, gop.offset);
      });
  return static_cast<std::uint64_t>(
      std::max<std::ptrdiff_t>(after - extents.begin(), 1) - 1);
}

std::uint64_t First8(const Digest256& id) {
  std::uint64_t out = 0;
  for (int i = 0; i < 8; ++i) out |= std::uint64_t{id[i]} << (8 * i);
  return out;
}

}  // namespace

std::uint32_t HomeOf(const Sample& sample,
                     const format::CaptureIndexView& index,
                     std::uint32_t nodes) {
  const random::Key key = random::MakeKey(Seed{0}, "plan.local");
  const std::uint64_t extent =
      First8(index.captures[sample.capture].id) +
      random::kGolden * (ExtentOf(sample, index) + 1);
  std::uint32_t home = 0;
  std::uint64_t best = 0;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const std::uint64_t draw = random::Draw(key, extent, node);
    if (node != 0 && draw <= best) continue;
    home = node;
    best = draw;
  }
  return home;
}

std::vector<std::uint32_t> LocalRanks(std::span<const std::uint32_t> homes,
                                      const DataRanks& ranks,
                                      std::vector<std::uint64_t> room) {
  std::vector<std::uint64_t> of_node(ranks.nodes());
  for (std::uint32_t r = 0; r < ranks.world; ++r) of_node[ranks.NodeOf(r)] += room[r];
  constexpr std::uint32_t kNowhere = UINT32_MAX;
  std::vector<std::uint32_t> nodes(homes.size(), kNowhere);
  for (std::size_t i = 0; i < homes.size(); ++i) {
    if (of_node[homes[i]] == 0) continue;
    --of_node[homes[i]];
    nodes[i] = homes[i];
  }
  std::uint32_t free = 0;
  for (std::uint32_t& node : nodes) {
    if (node != kNowhere) continue;
    while (of_node[free] == 0) ++free;
    --of_node[free];
    node = free;
  }
  // Each node's rank that comes next.
  std::vector<std::uint32_t> next(ranks.nodes());
  const std::uint32_t width = ranks.ranks_per_node == 0
                                  ? ranks.world
                                  : std::min(ranks.ranks_per_node, ranks.world);
  std::vector<std::uint32_t> out(homes.size());
  for (std::size_t i = 0; i < homes.size(); ++i) {
    const std::uint32_t first = nodes[i] * width;
    const std::uint32_t count = std::min(width, ranks.world - first);
    std::uint32_t& turn = next[nodes[i]];
    while (room[first + turn] == 0) turn = (turn + 1) % count;
    out[i] = first + turn;
    --room[out[i]];
    turn = (turn + 1) % count;
  }
  return out;
}

double HomeShare(std::span<const std::uint32_t> homes,
                 std::span<const std::uint32_t> ranks, const DataRanks& world) {
  if (homes.empty()) return 1;
  std::uint64_t at_home = 0;
  for (std::size_t i = 0; i < homes.size(); ++i) {
    at_home += world.NodeOf(ranks[i]) == homes[i] ? 1 : 0;
  }
  return static_cast<double>(at_home) / static_cast<double>(homes.size());
}

}  // namespace penstock::plan
