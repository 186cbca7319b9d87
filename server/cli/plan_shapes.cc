#include "server/cli/plan_shapes.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"
#include "server/pipeline/batch_layout.h"
#include "server/pipeline/planned_feed.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::json;

}  // namespace

absl::Status PrintShapes(const dataset::OpenedFeed& feed, std::uint32_t world,
                         bool json) {
  const plan::FeedSpec& spec = feed.feed();
  PENSTOCK_ASSIGN_OR_RETURN(auto every, feed.planner->RankUnits(world));
  if (spec.microbatch != 0) every = {spec.microbatch};
  for (const std::uint64_t rows : every) {
    for (const plan::OutputSpec& o : spec.outputs) {
      const auto unit = pipeline::ItemOf(
          pipeline::FlatOutput(o),
          static_cast<std::uint32_t>(spec.sources[0].view.frames));
      const std::string dtype(layout::DTypeName(unit.dtype));
      std::vector<std::uint64_t> shape = {rows};
      shape.insert(shape.end(), unit.shape.begin(), unit.shape.end());
      if (json) {
        std::printf("%s\n", Json{{"schema", "penstock.plan.v1"},
                                 {"type", "shape"},
                                 {"tensor", o.name},
                                 {"dtype", dtype},
                                 {"shape", shape}}
                                .dump()
                                .c_str());
      } else {
        std::printf("shape      %s %s [%s]\n", o.name.c_str(),
                    dtype.c_str(),
                    absl::StrJoin(shape, ", ").c_str());
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::cli
