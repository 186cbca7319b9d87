#include "server/cli/plan_heatmap.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/status/status.h"
#include "server/cli/output_file.h"
#include "server/cli/plan_head.h"
#include "server/cli/plan_picture.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::json;
using dataset::OpenedFeed;

// End of the steps to draw. Looks no further than they may go.
absl::StatusOr<std::uint64_t> EndOf(const OpenedFeed& feed, const HeatmapFlags& flags) {
  const std::uint64_t most = flags.step + kHeatmapStepsMax;
  const std::uint64_t wanted = flags.to.value_or(flags.step + kHeatmapSteps);
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::uint64_t end,
      RangeEnd(feed, flags.step, std::min(wanted, most + 1)));
  if (end <= most) return end;
  return MakeError(absl::StatusCode::kOutOfRange,
                   {.where = "--to",
                    .what = "too many steps for one heat map",
                    .found = absl::StrFormat("%d to %d, %d steps", flags.step, wanted,
                                             wanted - flags.step),
                    .expected = absl::StrFormat("at most %d steps", kHeatmapStepsMax),
                    .action = absl::StrFormat("give --to %d or less, or draw several",
                                              most)});
}

// The ranks of a step, in rows.
std::vector<PlanCell> RowsOf(const std::vector<std::uint64_t>& costs,
                             const plan::BatchCut& cut,
                             const plan::DataRanks& ranks,
                             std::uint32_t ranks_of_row) {
  double total = 0, speeds = 0;
  for (const std::uint64_t c : costs) total += static_cast<double>(c);
  const auto speed_of = [&](std::size_t r) {
    return ranks.speeds.empty() ? 1.0
                                : static_cast<double>(ranks.speeds[r].nanos);
  };
  for (std::size_t r = 0; r < cut.ranks.size(); ++r) speeds += speed_of(r);
  const double mean = total / speeds;
  std::vector<PlanCell> rows((cut.ranks.size() + ranks_of_row - 1) / ranks_of_row,
                             PlanCell{.of_mean = 0});
  for (std::size_t r = 0; r < cut.ranks.size(); ++r) {
    double cost = 0;
    for (const std::uint64_t i : cut.ranks[r]) cost += static_cast<double>(costs[i]);
    PlanCell& row = rows[r / ranks_of_row];
    row.of_mean =
        std::max(row.of_mean, mean > 0 ? cost / speed_of(r) / mean : 1);
    row.masked += cut.units - cut.ranks[r].size();
  }
  return rows;
}

absl::Status AddSteps(const OpenedFeed& feed, std::uint64_t end,
                      const plan::DataRanks& ranks, PlanPicture& picture) {
  for (std::uint64_t s = picture.from; s < end; ++s) {
    PENSTOCK_ASSIGN_OR_RETURN(const plan::GlobalBatch batch, feed.PlanStep({s}));
    PENSTOCK_ASSIGN_OR_RETURN(const plan::BatchCut cut,
                              feed.planner->Cut(batch, ranks));
    picture.steps.push_back(
        RowsOf(feed.planner->CostsOf(batch), cut, ranks, picture.ranks_of_row));
  }
  return absl::OkStatus();
}

absl::Status AddSources(const OpenedFeed& feed, std::uint64_t end, PlanPicture& picture) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto first, feed.CountsBefore({picture.from}));
  PENSTOCK_ASSIGN_OR_RETURN(const auto asked_first, feed.AskedBefore({picture.from}));
  for (const auto& source : feed.sources) picture.sources.push_back({.name = source.name});
  for (std::uint64_t s = picture.from; s <= end; ++s) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto counts, feed.CountsBefore({s}));
    PENSTOCK_ASSIGN_OR_RETURN(const auto asked, feed.AskedBefore({s}));
    for (std::size_t i = 0; i < counts.size(); ++i) {
      SourceShare& share = picture.sources[i];
      share.realised.push_back(counts[i] - first[i]);
      if (!asked.empty()) share.asked.push_back(asked[i] - asked_first[i]);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanPicture> PictureOf(const OpenedFeed& feed, const HeatmapFlags& flags) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t end, EndOf(feed, flags));
  const bool buckets = !feed.feed().buckets.empty();
  PlanPicture picture{
      .feed = feed.feed().name,
      .order_digest = hash::Hex(feed.order_digest),
      .cost = feed.feed().cost,
      .units = buckets                   ? "microbatches"
               : feed.planner->packing() ? "packs"
                                         : "samples",
      .counted = buckets ? "microbatches" : "samples",
      .from = flags.step,
      .world = flags.ranks.world,
      .ranks_of_row = (flags.ranks.world + kHeatmapRows - 1) / kHeatmapRows};
  PENSTOCK_RETURN_IF_ERROR(AddSteps(feed, end, flags.ranks, picture));
  PENSTOCK_RETURN_IF_ERROR(AddSources(feed, end, picture));
  return picture;
}

}  // namespace

absl::Status PrintHeatmap(const OpenedFeed& feed, const HeatmapFlags& flags, bool json) {
  PENSTOCK_ASSIGN_OR_RETURN(const PlanPicture picture, PictureOf(feed, flags));
  PENSTOCK_RETURN_IF_ERROR(WriteOutputFile(flags.file, DrawPlan(picture)));
  const std::uint64_t end = picture.from + picture.steps.size();
  const std::size_t rows = picture.steps[0].size();
  const std::string line =
      json ? Json{{"schema", kPlanSchema},
                  {"type", "heatmap"},
                  {"file", flags.file},
                  {"from", picture.from},
                  {"to", end},
                  {"world", picture.world},
                  {"rows", rows}}
                 .dump(-1, ' ', false, Json::error_handler_t::replace)
           : absl::StrFormat("heatmap    %s: steps %d to %d, ranks %d, rows %d",
                             flags.file, picture.from, end, picture.world, rows);
  std::printf("%s\n", line.c_str());
  return absl::OkStatus();
}

}  // namespace penstock::cli
