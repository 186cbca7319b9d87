#include "common/plan/canonical.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/hash/hash.h"
#include "common/plan/json_text.h"
#include "common/plan/weights.h"

namespace penstock::plan {
namespace {

constexpr char kNull[] = "null";

const char* NameOf(Align a) { return a == Align::kGop ? "gop" : "none"; }
const char* NameOf(Pairing p) {
  return p == Pairing::kFrameTActionT ? "frame_t_action_t"
                                      : "frame_t_action_t_minus_1";
}
const char* NameOf(OrderMode o) {
  return o == OrderMode::kShuffle ? "shuffle" : "sequential";
}
const char* NameOf(Mode m) {
  return m == Mode::kEvaluation ? "evaluation" : "training";
}
const char* NameOf(CutMode c) {
  return c == CutMode::kStrided    ? "strided"
         : c == CutMode::kMegatron ? "megatron"
         : c == CutMode::kBalanced ? "balanced"
                                   : "local";
}
const char* NameOf(Exhaustion e) {
  return e == Exhaustion::kRepeat ? "repeat"
         : e == Exhaustion::kStop ? "stop"
                                  : "renormalise";
}
const char* NameOf(StrataMode m) {
  switch (m) {
    case StrataMode::kUniform: return "uniform";
    case StrataMode::kTemperature: return "temperature";
    case StrataMode::kExplicit: return "explicit";
    default: return "proportional";
  }
}
const char* NameOf(TooLong t) {
  return t == TooLong::kError      ? "error"
         : t == TooLong::kTruncate ? "truncate"
                                   : "split";
}
const char* NameOf(layout::PixelLayout l) {
  return l == layout::PixelLayout::kTchw ? "tchw" : "thwc";
}
const char* NameOf(layout::Colour c) {
  return c == layout::Colour::kRgb ? "rgb" : "gray";
}
const char* NameOf(layout::Resize r) {
  return r == layout::Resize::kBilinear ? "bilinear" : "letterbox";
}

// The hop in frames, or null where it follows from each track's rate.
std::string Hop(const ViewSpec& v) {
  if (v.hop != 0) return absl::StrCat(v.hop);
  return v.stride == 0 ? kNull : absl::StrCat(v.frames * v.stride);
}

std::string ViewText(const ViewSpec& v) {
  const bool fps = v.stride == 0;
  return JsonObject()
      .Text("track", v.track)
      .Number("frames", v.frames)
      .Number("min_frames", v.shortest())
      .Json("stride", fps ? kNull : absl::StrCat(v.stride))
      .Json("fps", fps ? JsonString(FormatFraction(v.fps)) : kNull)
      .Json("hop", Hop(v))
      .Text("align", NameOf(v.align))
      .Render();
}

// Null without strata.
std::string StrataText(const StrataSpec& s) {
  if (s.by.empty()) return kNull;
  JsonObject weights;
  for (const auto& [label, weight] : s.weights) {
    weights.Text(label.c_str(), FormatDecimal(weight));
  }
  return JsonObject()
      .Json("by", JsonStrings(s.by))
      .Text("mode", NameOf(s.mode))
      .Json("temperature", s.mode == StrataMode::kTemperature
                               ? JsonString(FormatDecimal(s.temperature))
                               : kNull)
      .Json("weights", weights.Render())
      .Render();
}

std::string BucketText(const BucketSpec& b) {
  return JsonObject()
      .Text("name", b.name)
      .Number("frames", b.frames)
      .Number("width", b.width)
      .Number("height", b.height)
      .Json("fps", b.fps.num == 0 ? kNull : JsonString(FormatFraction(b.fps)))
      .Number("samples", b.samples)
      .Render();
}

// Null without packing.
std::string PackingText(const PackingSpec& p) {
  if (p.tokens == 0) return kNull;
  return JsonObject()
      .Number("tokens", p.tokens)
      .Number("window", p.window)
      .Number("segments", p.segments)
      .Number("frames", p.frames)
      .Number("length_multiple", p.length_multiple)
      .Text("too_long", NameOf(p.too_long))
      .Render();
}

std::string StageText(const StageSpec& stage) {
  std::vector<std::string> sources;
  for (const StageSource& s : stage.sources) {
    sources.push_back(
        JsonObject()
            .Text("name", s.name)
            .Json("weight", s.weight ? JsonString(FormatDecimal(*s.weight)) : kNull)
            .Json("view", s.view ? ViewText(*s.view) : kNull)
            .Render());
  }
  return JsonObject()
      .Number("step", stage.step)
      .Number("global_batch", stage.global_batch)
      .Json("sources", JsonList(sources))
      .Render();
}

struct OutputFields {
  JsonObject& json;
  void operator()(const VideoOutput& v) const {
    json.Text("kind", "video").Number("width", v.width);
    json.Number("height", v.height).Text("layout", NameOf(v.layout));
    json.Text("colour", NameOf(v.colour)).Text("resize", NameOf(v.resize));
  }
  void operator()(const KeysOutput& k) const {
    json.Text("kind", "keys").Text("track", k.track);
    json.Json("keys", JsonStrings(k.keys));
  }
  void operator()(const MouseOutput& m) const {
    json.Text("kind", "mouse").Text("track", m.track);
  }
  void operator()(const ColumnsOutput& c) const {
    json.Text("kind", "columns").Text("track", c.track);
    json.Json("columns", JsonStrings(c.columns));
  }
  void operator()(const TimesOutput&) const { json.Text("kind", "times"); }
};

std::string OutputText(const OutputSpec& o) {
  JsonObject json;
  json.Text("name", o.name);
  std::visit(OutputFields{json}, o.kind);
  return json.Render();
}

Digest256 Digest(const char* domain, const std::string& text) {
  return hash::Sha256Of(domain + text);
}

}  // namespace

std::vector<std::uint32_t> QuotasOf(const FeedSpec& feed) {
  std::vector<Decimal> weights;
  for (const SourceSpec& s : feed.sources) weights.push_back(s.weight);
  return RoundWeights(weights).quotas;
}

std::string CanonicalOrder(const FeedSpec& feed) {
  const auto quotas = QuotasOf(feed);
  // What is left of the weights when some change or leave.
  const bool exact = !feed.stages.empty() || feed.per == Per::kTokens ||
                     feed.exhaustion == Exhaustion::kRenormalise;
  // What units and weights are in tokens.
  const bool lengths = feed.packing.tokens != 0 || feed.per == Per::kTokens;
  std::vector<std::string> sources, stages, skips, buckets;
  for (const BucketSpec& b : feed.buckets) buckets.push_back(BucketText(b));
  for (const StageSpec& s : feed.stages) stages.push_back(StageText(s));
  for (const SkipSpec& s : feed.skip) {
    skips.push_back(
        JsonObject().Number("from", s.from).Number("to", s.to).Render());
  }
  for (std::size_t i = 0; i < feed.sources.size(); ++i) {
    sources.push_back(JsonObject()
                          .Text("name", feed.sources[i].name)
                          .Number("quota", quotas[i])
                          .Json("weight", exact ? JsonString(FormatDecimal(
                                                      feed.sources[i].weight))
                                                : kNull)
                          .Number("limit", LimitOf(feed, feed.sources[i]))
                          .Json("strata", StrataText(feed.sources[i].strata))
                          .Json("view", ViewText(feed.sources[i].view))
                          .Render());
  }
  return JsonObject()
      .Number("plan_version", kPlanVersion)
      .Number("seed", feed.seed.value)
      .Number("global_batch", feed.global_batch)
      .Text("mode", NameOf(feed.mode))
      .Text("exhaustion", NameOf(feed.exhaustion))
      .Json("stages", JsonList(stages))
      .Json("skip", JsonList(skips))
      .Text("order", NameOf(feed.order))
      .Text("per", feed.per == Per::kTokens ? "tokens" : "samples")
      .Json("length", lengths ? JsonString(feed.length) : kNull)
      .Json("buckets", JsonList(buckets))
      .Json("packing", PackingText(feed.packing))
      .Number("lanes", feed.lanes)
      .Json("sources", JsonList(sources))
      .Render();
}

std::string CanonicalContent(const FeedSpec& feed) {
  std::vector<std::string> sources, outputs;
  for (const SourceSpec& s : feed.sources) {
    sources.push_back(JsonObject()
                          .Text("name", s.name)
                          .Text("pairing", NameOf(s.view.pairing))
                          .Render());
  }
  for (const OutputSpec& o : feed.outputs) outputs.push_back(OutputText(o));
  return JsonObject()
      .Number("transform_version", kTransformVersion)
      .Json("outputs", JsonList(outputs))
      .Json("sources", JsonList(sources))
      .Render();
}

std::string CanonicalFeed(const FeedSpec& feed) {
  std::vector<std::string> sources;
  for (const SourceSpec& s : feed.sources) {
    sources.push_back(JsonObject()
                          .Text("name", s.name)
                          .Text("dataset", s.dataset)
                          .Text("dataset_id", s.dataset_id)
                          .Text("filter", s.filter)
                          .Text("weight", FormatDecimal(s.weight))
                          .Render());
  }
  return JsonObject()
      .Text("name", feed.name)
      .Text("cut", NameOf(feed.cut))
      .Text("cost", feed.cost)
      .Text("length", feed.length)
      .Text("uneven", feed.uneven == Uneven::kMask ? "mask" : "error")
      .Number("microbatch", feed.microbatch)
      .Json("order", CanonicalOrder(feed))
      .Json("content", CanonicalContent(feed))
      .Json("sources", JsonList(sources))
      .Render();
}

Digest256 OrderDigest(const FeedSpec& feed) {
  return Digest("penstock.order.v1\n", CanonicalOrder(feed));
}

Digest256 ContentDigest(const FeedSpec& feed) {
  return Digest("penstock.content.v1\n", CanonicalContent(feed));
}

}  // namespace penstock::plan
