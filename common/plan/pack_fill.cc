#include "common/plan/pack_fill.h"

#include <algorithm>
#include <vector>

#include "common/status/status.h"

namespace penstock::plan {
namespace {

constexpr std::size_t kWindows = 4;

double FillAt(const std::vector<PackItem>& items, const PackLimits& limits) {
  double tokens = 0;
  for (const PackItem& i : items) tokens += static_cast<double>(i.tokens);
  return tokens / (static_cast<double>(PackItems(items, limits).size()) *
                   static_cast<double>(limits.tokens));
}

}  // namespace

absl::StatusOr<PackFill> ExpectedFill(const PlanInputs& inputs,
                                      const PackPlan& packs) {
  const PackingSpec& spec = inputs.feed.packing;
  const PackLimits limits = PackLimitsOf(inputs.feed, *inputs.length);
  double fill = 0, windows = 0;
  std::vector<PackItem> items;  // of the first window
  for (const PackWindow& w : packs.Next(kWindows)) {
    PENSTOCK_ASSIGN_OR_RETURN(const PackedWindow packed,
                              PackOne(inputs, *packs.stream(), w));
    fill += FillOf(inputs.feed, packed);
    ++windows;
    if (!items.empty()) continue;
    for (const Sample& s : packed.samples) items.push_back({s.tokens, s.frames});
  }
  PackFill out;
  if (windows == 0) return out;
  out.fill = fill / windows;
  if (out.fill >= kFillWanted) return out;
  std::uint64_t longest = 1;
  for (const PackItem& i : items) longest = std::max(longest, i.tokens);
  // 17/16, 15/16, 18/16, 14/16, …
  for (std::uint64_t n = 1; n <= 48 && out.proposed == 0; ++n) {
    for (const std::int64_t sixteenths :
         {16 + static_cast<std::int64_t>(n), 16 - static_cast<std::int64_t>(n)}) {
      if (sixteenths < 8) continue;
      const std::uint64_t budget =
          spec.tokens * static_cast<std::uint64_t>(sixteenths) / 16 /
          spec.length_multiple * spec.length_multiple;
      if (budget < longest || budget > kPackTokensMax) continue;
      PackLimits tried = limits;
      tried.tokens = budget;
      if (spec.frames == 0) {
        tried.frames = limits.frames * static_cast<std::uint64_t>(sixteenths) / 16;
      }
      if (std::any_of(items.begin(), items.end(), [&](const PackItem& i) {
            return i.frames > tried.frames;
          })) {
        continue;
      }
      if (FillAt(items, tried) < kFillWanted) continue;
      out.proposed = budget;
      break;
    }
  }
  return out;
}

}  // namespace penstock::plan
