#include "common/plan/pack.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace penstock::plan {

std::vector<std::vector<std::uint32_t>> PackItems(std::span<const PackItem> items,
                                                  const PackLimits& limits) {
  std::vector<std::uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(items[a].tokens, items[a].frames) >
           std::pair(items[b].tokens, items[b].frames);
  });
  std::vector<std::vector<std::uint32_t>> packs;
  std::vector<PackLimits> left;
  std::set<std::pair<std::uint64_t, std::uint32_t>> open;  // tokens left, pack
  for (const std::uint32_t i : order) {
    const PackItem& item = items[i];
    auto at = open.lower_bound({item.tokens, 0});
    while (at != open.end() && left[at->second].frames < item.frames) ++at;
    std::uint32_t pack;
    if (at != open.end()) {
      pack = at->second;
      open.erase(at);
    } else {
      pack = static_cast<std::uint32_t>(packs.size());
      packs.emplace_back();
      left.push_back(limits);
    }
    packs[pack].push_back(i);
    PackLimits& l = left[pack];
    l.tokens -= item.tokens;
    l.frames -= item.frames;
    l.segments -= 1;
    if (l.tokens > 0 && l.frames > 0 && l.segments > 0) open.emplace(l.tokens, pack);
  }
  for (auto& pack : packs) std::sort(pack.begin(), pack.end());
  return packs;
}

}  // namespace penstock::plan
