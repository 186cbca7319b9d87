#include "server/cli/plan_home.h"

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "server/cli/plan_head.h"

namespace penstock::cli {
namespace {

constexpr std::uint64_t kSteps = 64;  // that the expected share is the mean of,
constexpr std::uint64_t kUnits = 1u << 18;  // or fewer that have so many units

struct Shares {
  double local = 0, strided = 0;
};

Shares SharesOf(const dataset::OpenedFeed& feed, const plan::GlobalBatch& batch,
                const plan::DataRanks& ranks) {
  const auto homes = feed.planner->HomesOf(batch, ranks.nodes());
  std::vector<std::uint32_t> strided;
  for (std::size_t i = 0; i < homes.size(); ++i) {
    strided.push_back(static_cast<std::uint32_t>(i % ranks.world));
  }
  return {plan::HomeShare(homes, plan::LocalRanks(homes, ranks), ranks),
          plan::HomeShare(homes, strided, ranks)};
}

}  // namespace

absl::Status PrintHomes(const dataset::OpenedFeed& feed,
                        const plan::GlobalBatch& batch, const plan::DataRanks& ranks,
                        bool json) {
  if (feed.feed().cut != plan::CutMode::kLocal) return absl::OkStatus();
  const Shares here = SharesOf(feed, batch, ranks);
  Shares mean;
  double steps = 0;
  std::uint64_t units = 0;
  for (std::uint64_t k = batch.step.value; steps < kSteps && units < kUnits;
       ++k) {
    const auto next = feed.PlanStep({k});
    if (next.status().code() == absl::StatusCode::kOutOfRange) break;
    PENSTOCK_RETURN_IF_ERROR(next.status());
    const Shares shares = SharesOf(feed, *next, ranks);
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
