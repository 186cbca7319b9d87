#include "server/pipeline/batch_layout.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/status/status.h"

namespace penstock::pipeline {
namespace {

absl::StatusOr<layout::VideoTransform> TransformOf(
    const OutputSpec& o, const SourceRef& source, std::uint32_t capture,
    const format::TrackRow& t) {
  const auto& index = source.dataset->index();
  if (t.bit_depth != 8 || t.chroma != format::Chroma::k420) {
    std::string found = absl::StrFormat("%d bit, chroma code %d", t.bit_depth,
                                        static_cast<int>(t.chroma));
    return MakeError(
        absl::StatusCode::kUnimplemented,
        {.where = absl::StrFormat(
             "source \"%s\", capture %s", source.name,
             hash::Hex(index.captures[capture].id).substr(0, 16)),
         .what = "this pixel format is not converted",
         .found = found,
         .expected = "8-bit 4:2:0",
         .action = "leave these captures out with a filter, or re-encode them"});
  }
  layout::VideoTransform v;
  v.src_width = t.width;
  v.src_height = t.height;
  v.matrix = t.colour_matrix == 2 || t.colour_matrix == 3
                 ? layout::AssumedMatrix(t.height)
                 : t.colour_matrix;
  v.full_range = (t.flags & format::kTrackFullRange) != 0;
  v.rotation = t.rotation;
  v.width = o.width;
  v.height = o.height;
  v.layout = o.layout;
  v.colour = o.colour;
  v.resize = o.resize;
  auto plan = layout::TransformPlan::Create(v);
  if (!plan.ok()) return Annotate(plan.status(), "output \"" + o.name + "\"");
  return v;
}

absl::Status CheckOutput(const OutputSpec& o) {
  if (o.kind == OutputKind::kVideo && (o.width == 0 || o.height == 0)) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = "output \"" + o.name + "\"",
                      .what = "the size must be given",
                      .found = absl::StrFormat("%dx%d", o.width, o.height),
                      .expected = "width and height of at least 1",
                      .action = "give width and height"});
  }
  if ((o.kind == OutputKind::kKeys || o.kind == OutputKind::kColumns) &&
      o.names.empty()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = "output \"" + o.name + "\"",
         .what = o.kind == OutputKind::kKeys ? "no keys" : "no columns",
         .found = "an empty list",
         .expected = "at least one name",
         .action = "name them, or remove the output"});
  }
  return absl::OkStatus();
}

}  // namespace

layout::ItemTensor ItemOf(const OutputSpec& o, std::uint32_t frames) {
  using layout::DType;
  const std::uint64_t t = frames;
  const std::uint64_t n = o.names.size();
  switch (o.kind) {
    case OutputKind::kVideo: {
      const std::uint64_t c = o.colour == layout::Colour::kRgb ? 3 : 1;
      if (o.layout == layout::PixelLayout::kTchw) {
        return {o.name, DType::kU8, {t, c, o.height, o.width}};
      }
      return {o.name, DType::kU8, {t, o.height, o.width, c}};
    }
    case OutputKind::kKeys:
      return {o.name, DType::kU8, {t, n}};
    case OutputKind::kMouse:
      return {o.name, DType::kI32, {t, 4}};
    case OutputKind::kColumns:
      return {o.name, DType::kF32, {t, 2 * n}};
    case OutputKind::kTimes:
      return {o.name, DType::kI64, {t}};
  }
  return {};
}

absl::StatusOr<BatchLayout> MakeBatchLayout(const FeedPlan& plan,
                                            std::uint32_t data_world) {
  if (data_world == 0) return absl::InvalidArgumentError("no data ranks");
  BatchLayout out;
  PENSTOCK_ASSIGN_OR_RETURN(out.items, plan.UnitsMax(data_world));
  out.microbatches =
      plan.microbatch() == 0 ? 1 : out.items / plan.microbatch();
  if (plan.outputs().empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = "outputs",
                      .what = "the feed makes no tensor",
                      .found = "none",
                      .expected = "at least one output",
                      .action = "give the feed outputs"});
  }
  std::vector<layout::ItemTensor> items;
  for (const OutputSpec& o : plan.outputs()) {
    PENSTOCK_RETURN_IF_ERROR(CheckOutput(o));
    items.push_back(ItemOf(o, plan.frames()));
  }
  PENSTOCK_ASSIGN_OR_RETURN(out.slab, layout::LayOutSlab(items, out.items));
  for (const SourceRef& source : plan.sources()) {
    auto& of_source = out.transforms.emplace_back();
    for (std::size_t c = 0; c < source.captures.size(); ++c) {
      auto& of_capture = of_source.emplace_back();
      const auto& track = source.dataset->index().tracks[source.tracks[c]];
      for (const OutputSpec& o : plan.outputs()) {
        if (o.kind != OutputKind::kVideo) continue;
        PENSTOCK_ASSIGN_OR_RETURN(
            auto v, TransformOf(o, source, source.captures[c], track));
        of_capture.push_back(v);
      }
    }
  }
  return out;
}

}  // namespace penstock::pipeline
