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

void Print(const std::string& bucket, const layout::TensorDesc& t,
           plan::TensorRole role, bool json) {
  const std::string dtype(layout::DTypeName(t.dtype));
  if (json) {
    Json line{{"schema", "penstock.plan.v1"},
              {"type", "shape"},
              {"tensor", t.name},
              {"dtype", dtype},
              {"shape", t.shape},
              {"role", plan::RoleText(role)}};
    if (!bucket.empty()) line["bucket"] = bucket;
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf("shape      %s%s %s [%s]  %s\n",
              bucket.empty() ? "" : (bucket + ": ").c_str(), t.name.c_str(),
              dtype.c_str(), absl::StrJoin(t.shape, ", ").c_str(),
              plan::RoleText(role));
}

}  // namespace

absl::Status PrintShapes(const dataset::OpenedFeed& feed,
                         const plan::DataRanks& ranks, const plan::CpCut& cp,
                         bool json) {
  const plan::FeedSpec& spec = feed.feed();
  PENSTOCK_ASSIGN_OR_RETURN(auto every, feed.planner->RankUnits(ranks));
  if (spec.microbatch != 0) every = {spec.microbatch};
  if (!spec.buckets.empty()) every = {1};  // their microbatches say how many
  const auto plan = pipeline::PlanOf(feed);
  for (const std::uint64_t units : every) {
    pipeline::BatchLayout layout{.cp = cp};
    PENSTOCK_ASSIGN_OR_RETURN(layout.shapes, pipeline::ShapesOf(*plan, units));
    PENSTOCK_ASSIGN_OR_RETURN(const auto shapes,
                              pipeline::ShapesFor(*plan, layout, {}));
    for (const pipeline::ShapeLayout& shape : shapes) {
      for (const layout::TensorDesc& t : shape.slab.tensors)
        Print(shape.name, t, pipeline::RoleOf(*plan, t), json);
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::cli
