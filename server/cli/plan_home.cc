#include "server/cli/plan_home.h"

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/plan/local_cut.h"
#include "common/status/status.h"
#include "server/cli/plan_head.h"

namespace penstock::cli {
namespace {

constexpr std::uint64_t kSteps = 64;  // that the expected share is the mean of,
constexpr std::uint64_t kUnits = 1u << 18;  // or fewer that have so many units

struct Shares {
  double local = 0, strided = 0;
};

double ShareOf(std::span<const std::uint32_t> homes, const plan::BatchCut& cut,
               const plan::DataRanks& ranks) {
  std::vector<std::uint32_t> of_units(homes.size());
  for (std::uint32_t r = 0; r < cut.ranks.size(); ++r) {
    for (const std::uint64_t i : cut.ranks[r]) of_units[i] = r;
  }
  return plan::HomeShare(homes, of_units, ranks);
}

absl::StatusOr<Shares> SharesOf(const dataset::OpenedFeed& feed,
                                const plan::GlobalBatch& batch,
                                const plan::DataRanks& ranks) {
  const auto homes = feed.planner->HomesOf(batch, ranks.nodes());
  plan::CutRule rule = plan::CutRuleOf(feed.feed());
  const auto cut = [&](plan::CutMode mode) {
    rule.mode = mode;
    return plan::CutBatch(rule, batch.global_batch, batch.units.size(), ranks,
                          {}, homes);
  };
  PENSTOCK_ASSIGN_OR_RETURN(const auto local, cut(plan::CutMode::kLocal));
  PENSTOCK_ASSIGN_OR_RETURN(const auto strided, cut(plan::CutMode::kStrided));
  return Shares{ShareOf(homes, local, ranks), ShareOf(homes, strided, ranks)};
}

}  // namespace

absl::Status PrintHomes(const dataset::OpenedFeed& feed,
                        const plan::GlobalBatch& batch, const plan::DataRanks& ranks,
                        bool json) {
  if (feed.feed().cut != plan::CutMode::kLocal) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const Shares here, SharesOf(feed, batch, ranks));
  Shares mean;
  double steps = 0;
  std::uint64_t units = 0;
  for (std::uint64_t k = batch.step.value; steps < kSteps && units < kUnits;
       ++k) {
    const auto next = feed.PlanStep({k});
    if (next.status().code() == absl::StatusCode::kOutOfRange) break;
    PENSTOCK_RETURN_IF_ERROR(next.status());
    PENSTOCK_ASSIGN_OR_RETURN(const Shares shares,
                              SharesOf(feed, *next, ranks));
    mean.local += shares.local;
    mean.strided += shares.strided;
    ++steps;
    units += next->units.size();
  }
  mean.local /= steps;
  mean.strided /= steps;
  if (json) {
    std::printf("%s\n", nlohmann::json{{"schema", kPlanSchema},
                                       {"type", "homes"},
                                       {"nodes", ranks.nodes()},
                                       {"home_share", here.local},
                                       {"expected_home_share", mean.local},
                                       {"strided_home_share", mean.strided},
                                       {"steps", steps}}
                            .dump()
                            .c_str());
    return absl::OkStatus();
  }
  std::printf("homes      %u nodes: %.3f of the units on their home node, expected "
              "%.3f (%.0f steps), strided %.3f\n",
              ranks.nodes(), here.local, mean.local, steps, mean.strided);
  return absl::OkStatus();
}

}  // namespace penstock::cli
