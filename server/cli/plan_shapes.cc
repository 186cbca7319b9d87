#include "server/cli/plan_shapes.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/plan/cut.h"
#include "common/status/status.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::json;
using Shape = std::vector<std::uint64_t>;

// Type and shape of one unit; proto/penstock/v1/feed.proto says them.
struct UnitOf {
  std::uint64_t frames;
  std::pair<const char*, Shape> operator()(const plan::VideoOutput& v) const {
    const std::uint64_t c = v.colour == layout::Colour::kRgb ? 3 : 1;
    if (v.layout == layout::PixelLayout::kTchw) {
      return {"u8", {frames, c, v.height, v.width}};
    }
    return {"u8", {frames, v.height, v.width, c}};
  }
  std::pair<const char*, Shape> operator()(const plan::KeysOutput& k) const {
    return {"u8", {frames, k.keys.size()}};
  }
  std::pair<const char*, Shape> operator()(const plan::MouseOutput&) const {
    return {"i32", {frames, 4}};
  }
  std::pair<const char*, Shape> operator()(const plan::ColumnsOutput& c) const {
    return {"f32", {frames, 2 * c.columns.size()}};
  }
  std::pair<const char*, Shape> operator()(const plan::TimesOutput&) const {
    return {"i64", {frames}};
  }
};

}  // namespace

absl::Status PrintShapes(const dataset::OpenedFeed& feed, std::uint32_t world,
                         bool json) {
  const plan::FeedSpec& spec = feed.feed();
  std::set<std::pair<std::uint64_t, std::string>> said;
  PENSTOCK_ASSIGN_OR_RETURN(const auto every, feed.planner->RankUnits(world));
  for (const std::uint64_t units : every) {
    const std::uint64_t rows = spec.microbatch != 0 ? spec.microbatch : units;
    for (const plan::OutputSpec& o : spec.outputs) {
      auto [dtype, shape] = std::visit(UnitOf{spec.sources[0].view.frames}, o.kind);
      shape.insert(shape.begin(), rows);
      if (!said.emplace(rows, o.name).second) continue;
      if (json) {
        std::printf("%s\n", Json{{"schema", "penstock.plan.v1"},
                                 {"type", "shape"},
                                 {"tensor", o.name},
                                 {"dtype", dtype},
                                 {"shape", shape}}
                                .dump()
                                .c_str());
      } else {
        std::printf("shape      %s %s [%s]\n", o.name.c_str(), dtype,
                    absl::StrJoin(shape, ", ").c_str());
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::cli
