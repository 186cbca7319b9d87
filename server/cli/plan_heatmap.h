#ifndef PENSTOCK_SERVER_CLI_PLAN_HEATMAP_H_
#define PENSTOCK_SERVER_CLI_PLAN_HEATMAP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/plan/cut.h"
#include "server/dataset/plan_source.h"

namespace penstock::cli {

inline constexpr std::uint64_t kHeatmapSteps = 200;  // without --to
inline constexpr std::uint64_t kHeatmapStepsMax = 2000;
inline constexpr std::uint32_t kHeatmapRows = 64;  // more ranks share rows

struct HeatmapFlags {
  std::string file;
  std::uint64_t step = 0;
  std::optional<std::uint64_t> to;
  plan::DataRanks ranks;
};

// Draws the plan of the steps [step, to), as far as there is data, into a file
// (plan_picture.h), and says so on stdout.
//
// kOutOfRange:      no steps, or too many
// kInvalidArgument: the ranks cannot share a global batch; as WriteOutputFile
absl::Status PrintHeatmap(const dataset::OpenedFeed& feed, const HeatmapFlags& flags,
                          bool json);

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_PLAN_HEATMAP_H_
