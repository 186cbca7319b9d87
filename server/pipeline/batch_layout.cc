#include "server/pipeline/batch_layout.h"

#include <algorithm>
#include <iterator>

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

// The plain and the packed unit as a shape: one row a unit.
std::vector<ShapeSpec> ShapeSpecsOf(const FeedPlan& plan, std::uint64_t units) {
  if (!plan.shapes().empty()) return plan.shapes();
  return {{.name = "", .frames = plan.frames(), .samples = units}};
}

OutputSpec InShape(const OutputSpec& output, const ShapeSpec& shape) {
  OutputSpec out = output;
  if (out.kind != OutputKind::kVideo || shape.width == 0) return out;
  out.width = shape.width;
  out.height = shape.height;
  return out;
}

// An output in the size that samples of a track have: that of their buckets.
OutputSpec SizedFor(const FeedPlan& plan, const OutputSpec& output,
                    const format::TrackRow& track) {
  const auto shape = plan.ShapeOf(track);
  return shape ? InShape(output, plan.shapes()[*shape]) : output;
}

constexpr const char* kTokenTensors[] = {"segment_ids", "position_ids"};

// README.md "Tensors of the plan".
void AddPlanTensors(const FeedPlan& plan,
                    std::vector<layout::ItemTensor>& items) {
  const auto add = [&](const char* name, std::vector<std::uint64_t> shape) {
    items.push_back({name, layout::DType::kI32, std::move(shape)});
  };
  const PackSpec& p = plan.packing();
  if (!plan.shapes().empty()) add("sample_frames", {});
  if (plan.lanes()) add("reset", {});
  if (p.tokens == 0) return;
  for (const char* name : kTokenTensors) add(name, {p.tokens});
  add("cu_seqlens", {p.segments + 1});
  add("cu_frames", {p.segments + 1});
}

}  // namespace

bool IsTokenTensor(const layout::TensorDesc& tensor) {
  return std::any_of(std::begin(kTokenTensors), std::end(kTokenTensors),
                     [&](const char* name) { return tensor.name == name; });
}

plan::TensorRole RoleOf(const FeedPlan& plan,
                        const layout::TensorDesc& tensor) {
  for (const OutputSpec& o : plan.outputs()) {
    if (o.name == tensor.name) return o.role;
  }
  return plan::TensorRole::kMetadata;
}

absl::StatusOr<std::vector<ShapeLayout>> ShapesFor(const FeedPlan& plan,
                                                   const BatchLayout& layout,
                                                   const RankPlace& place) {
  const std::uint32_t size = layout.cp.off() ? 1 : layout.cp.size;
  PENSTOCK_ASSIGN_OR_RETURN(const auto roles,
                            plan::RolesOf(place.pp_rank, place.pp_size));
  std::vector<ShapeLayout> out;
  for (const ShapeLayout& shape : layout.shapes) {
    ShapeLayout& given = out.emplace_back(shape);
    std::erase_if(given.slab.tensors, [&](const layout::TensorDesc& t) {
      return std::find(roles.begin(), roles.end(), RoleOf(plan, t)) ==
             roles.end();
    });
    for (layout::TensorDesc& t : given.slab.tensors) {
      if (size == 1 || !IsTokenTensor(t)) continue;
      t.shape[1] /= size;
      t.offset += place.cp_rank * t.shape[1] * t.strides[1];
    }
  }
  return out;
}

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

absl::StatusOr<std::vector<ShapeLayout>> ShapesOf(const FeedPlan& plan,
                                                  std::uint64_t units) {
  if (plan.outputs().empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = "outputs",
                      .what = "the feed makes no tensor",
                      .found = "none",
                      .expected = "at least one output",
                      .action = "give the feed outputs"});
  }
  std::vector<ShapeLayout> out;
  for (const ShapeSpec& shape : ShapeSpecsOf(plan, units)) {
    std::vector<layout::ItemTensor> items;
    for (const OutputSpec& o : plan.outputs()) {
      const OutputSpec sized = InShape(o, shape);
      PENSTOCK_RETURN_IF_ERROR(CheckOutput(sized));
      items.push_back(ItemOf(sized, shape.frames));
    }
    AddPlanTensors(plan, items);
    PENSTOCK_ASSIGN_OR_RETURN(auto slab,
                              layout::LayOutSlab(items, shape.samples));
    out.push_back({shape.name, std::move(slab)});
  }
  return out;
}

absl::Status CheckCpCut(const FeedPlan& plan, const plan::CpCut& cp) {
  const PackSpec& p = plan.packing();
  if (cp.off()) return absl::OkStatus();
  if (p.tokens == 0) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = "context-parallel cut",
         .what = "the feed has no tensor of tokens to cut",
         .found = plan::FormatCpCut(cp) + ", a feed without packing",
         .expected = "off: every rank is given whole samples",
         .action = "declare the cut off, or pack the feed"});
  }
  std::vector<std::uint64_t> boundaries = {0, p.tokens};
  if (cp.mode == plan::CpMode::kPerDocument &&
      p.length_multiple % (2 * cp.size) != 0) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = "context-parallel cut",
         .what = "documents of this feed cannot be cut into equal parts",
         .found =
             absl::StrFormat("packing: length_multiple %d", p.length_multiple),
         .expected =
             absl::StrFormat("a multiple of %d, twice the ranks", 2 * cp.size),
         .action =
             "correct length_multiple (the order of the samples changes with "
             "it), or take another cut"});
  }
  return plan::CpSlice(cp.mode, p.tokens, cp.size, 0, boundaries).status();
}

absl::StatusOr<BatchLayout> MakeBatchLayout(const FeedPlan& plan,
                                            const plan::DataRanks& ranks,
                                            const plan::CpCut& cp) {
  BatchLayout out;
  PENSTOCK_RETURN_IF_ERROR(CheckCpCut(plan, cp));
  out.cp = cp;
  PENSTOCK_ASSIGN_OR_RETURN(out.items, plan.UnitsMax(ranks));
  PENSTOCK_ASSIGN_OR_RETURN(out.shapes, ShapesOf(plan, out.items));
  if (plan.shapes().empty()) {
    out.bytes = out.shapes[0].slab.bytes;
    out.microbatches =
        plan.microbatch() == 0 ? 1 : out.items / plan.microbatch();
  } else {
    for (const ShapeLayout& s : out.shapes) {
      out.unit_stride = std::max(out.unit_stride, s.slab.bytes);
    }
    if (out.unit_stride > layout::kSlabBytesMax / out.items) {
      return MakeError(
          absl::StatusCode::kOutOfRange,
          {.where = "batch slab",
           .what = "the share of a rank is too large",
           .found = absl::StrFormat("%d microbatches of %d bytes", out.items,
                                    out.unit_stride),
           .expected =
               absl::StrFormat("at most %d bytes", layout::kSlabBytesMax),
           .action = "make global_batch or the buckets smaller, or "
                     "use more ranks"});
    }
    out.bytes = out.unit_stride * out.items;
    out.microbatches = out.items;
  }
  for (const SourceRef& source : plan.sources()) {
    auto& of_source = out.transforms.emplace_back();
    for (std::size_t c = 0; c < source.captures.size(); ++c) {
      auto& of_capture = of_source.emplace_back();
      const auto& track = source.dataset->index().tracks[source.tracks[c]];
      for (const OutputSpec& o : plan.outputs()) {
        if (o.kind != OutputKind::kVideo) continue;
        PENSTOCK_ASSIGN_OR_RETURN(auto v,
                                  TransformOf(SizedFor(plan, o, track), source,
                                              source.captures[c], track));
        of_capture.push_back(v);
      }
    }
  }
  return out;
}

}  // namespace penstock::pipeline
