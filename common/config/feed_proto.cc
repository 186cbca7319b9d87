#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/feed_file.h"
#include "common/config/yaml_message.h"
#include "common/status/status.h"
#include "penstock/v1/feed.pb.h"

namespace penstock::config {
namespace {

using plan::Fault;

// Converts a message; faults are collected with the field they are in.
class Converter {
 public:
  plan::FeedSpec Convert(const v1::Feed& f) {
    plan::FeedSpec out;
    out.name = f.name();
    out.seed = Seed{f.seed()};
    out.global_batch = f.global_batch();
    out.microbatch = f.microbatch();
    out.epochs = f.epochs();
    if (f.order() == v1::ORDER_SEQUENTIAL) {
      out.order = plan::OrderMode::kSequential;
    }
    if (f.cut() == v1::CUT_MEGATRON) out.cut = plan::CutMode::kMegatron;
    if (f.cut() == v1::CUT_BALANCED) out.cut = plan::CutMode::kBalanced;
    if (f.cut() == v1::CUT_LOCAL) out.cut = plan::CutMode::kLocal;
    if (!f.cost().empty()) out.cost = f.cost();
    out.length = f.length();
    if (f.per() == v1::PER_TOKENS) out.per = plan::Per::kTokens;
    for (int i = 0; i < f.buckets_size(); ++i) {
      out.buckets.push_back(
          ConvertBucket(f.buckets(i), absl::StrCat("buckets[", i, "]")));
    }
    out.lanes = f.lanes();
    if (f.has_packing()) out.packing = ConvertPacking(f.packing());
    if (f.mode() == v1::MODE_EVALUATION) out.mode = plan::Mode::kEvaluation;
    if (f.uneven() == v1::UNEVEN_MASK) out.uneven = plan::Uneven::kMask;
    out.exhaustion = ConvertExhaustion(f);
    for (const v1::Skip& s : f.skip()) out.skip.push_back({s.from(), s.to()});
    for (int i = 0; i < f.sources_size(); ++i) {
      out.sources.push_back(
          ConvertSource(f.sources(i), absl::StrCat("sources[", i, "]")));
    }
    for (int i = 0; i < f.stages_size(); ++i) {
      out.stages.push_back(
          ConvertStage(f.stages(i), out, absl::StrCat("stages[", i, "]")));
    }
    for (int i = 0; i < f.outputs_size(); ++i) {
      out.outputs.push_back(
          ConvertOutput(f.outputs(i), absl::StrCat("outputs[", i, "]")));
    }
    return out;
  }

  std::vector<Fault>& faults() { return faults_; }

 private:
  // A text field as a number; an empty text leaves `out` as it is.
  template <typename T>
  void Parse(absl::StatusOr<T> (*parse)(std::string_view),
             const std::string& text, const std::string& field, T& out) {
    if (text.empty()) return;
    auto value = parse(text);
    if (value.ok()) {
      out = *value;
    } else {
      faults_.push_back(
          {field, {.what = std::string(value.status().message())}});
    }
  }

  plan::SourceSpec ConvertSource(const v1::Source& s,
                                 const std::string& field) {
    plan::SourceSpec out{.name = s.name(),
                         .dataset = s.dataset(),
                         .dataset_id = s.dataset_id(),
                         .filter = s.filter()};
    Parse(plan::ParseDecimal, s.weight(), field + ".weight", out.weight);
    out.view = ConvertView(s.view(), field + ".view");
    out.strata = ConvertStrata(s.strata(), field + ".strata");
    out.epochs = s.epochs();
    return out;
  }

  static plan::Exhaustion ConvertExhaustion(const v1::Feed& f) {
    bool limited = f.epochs() != 0;
    for (const v1::Source& s : f.sources()) limited = limited || s.epochs() != 0;
    switch (f.exhaustion()) {
      case v1::EXHAUSTION_STOP: return plan::Exhaustion::kStop;
      case v1::EXHAUSTION_RENORMALISE: return plan::Exhaustion::kRenormalise;
      case v1::EXHAUSTION_REPEAT: return plan::Exhaustion::kRepeat;
      default:
        return limited ? plan::Exhaustion::kStop : plan::Exhaustion::kRepeat;
    }
  }

  plan::BucketSpec ConvertBucket(const v1::Bucket& b, const std::string& field) {
    plan::BucketSpec out{.name = b.name(),
                         .frames = b.frames(),
                         .width = b.width(),
                         .height = b.height(),
                         .fps = {},
                         .samples = b.samples() == 0 ? 1 : b.samples()};
    Parse(plan::ParseFraction, b.fps(), field + ".fps", out.fps);
    return out;
  }

  plan::PackingSpec ConvertPacking(const v1::Packing& p) {
    plan::PackingSpec out;
    const auto set = [](std::uint64_t value, std::uint64_t& to) {
      if (value != 0) to = value;
    };
    if (p.tokens() == 0) {
      faults_.push_back({"packing.tokens", {.what = "packing needs a budget",
                                            .found = "none",
                                            .expected = "tokens of a pack"}});
    }
    out.tokens = p.tokens();
    out.frames = p.frames();
    set(p.window(), out.window);
    set(p.segments(), out.segments);
    set(p.length_multiple(), out.length_multiple);
    if (p.too_long() == v1::TOO_LONG_TRUNCATE) out.too_long = plan::TooLong::kTruncate;
    if (p.too_long() == v1::TOO_LONG_SPLIT) out.too_long = plan::TooLong::kSplit;
    return out;
  }

  plan::StrataSpec ConvertStrata(const v1::Strata& s, const std::string& field) {
    plan::StrataSpec out{.by = {s.by().begin(), s.by().end()}};
    switch (s.mode()) {
      case v1::STRATA_MODE_UNIFORM:
        out.mode = plan::StrataMode::kUniform;
        break;
      case v1::STRATA_MODE_TEMPERATURE:
        out.mode = plan::StrataMode::kTemperature;
        break;
      case v1::STRATA_MODE_EXPLICIT:
        out.mode = plan::StrataMode::kExplicit;
        break;
      default:
        break;
    }
    Parse(plan::ParseDecimal, s.temperature(), field + ".temperature",
          out.temperature);
    for (int i = 0; i < s.weights_size(); ++i) {
      plan::Decimal weight = plan::kOne;
      Parse(plan::ParseDecimal, s.weights(i).weight(),
            absl::StrCat(field, ".weights[", i, "].weight"), weight);
      out.weights.emplace_back(s.weights(i).label(), weight);
    }
    return out;
  }

  plan::StageSpec ConvertStage(const v1::Stage& s, const plan::FeedSpec& feed,
                               const std::string& field) {
    plan::StageSpec out{.step = s.step(), .global_batch = s.global_batch()};
    for (int i = 0; i < s.sources_size(); ++i) {
      const v1::StageSource& from = s.sources(i);
      const std::string at = absl::StrCat(field, ".sources[", i, "]");
      plan::StageSource& to = out.sources.emplace_back();
      to.name = from.name();
      if (!from.weight().empty()) {
        to.weight.emplace();
        Parse(plan::ParseDecimal, from.weight(), at + ".weight", *to.weight);
      }
      if (!from.has_view()) continue;
      to.view = ConvertView(from.view(), at + ".view");
      for (const plan::SourceSpec& source : feed.sources) {  // what it leaves out
        if (source.name != from.name()) continue;
        if (from.view().track().empty()) to.view->track = source.view.track;
        if (from.view().pairing() == v1::PAIRING_UNSPECIFIED) {
          to.view->pairing = source.view.pairing;
        }
      }
    }
    return out;
  }

  plan::ViewSpec ConvertView(const v1::View& v, const std::string& field) {
    plan::ViewSpec out{
        .track = v.track(), .frames = v.frames(), .hop = v.hop()};
    out.min_frames = v.min_frames();
    Parse(plan::ParseFraction, v.fps(), field + ".fps", out.fps);
    const std::uint64_t standard = v.fps().empty() ? 1 : 0;
    out.stride = v.stride() == 0 ? standard : v.stride();
    if (v.align() == v1::ALIGN_GOP) out.align = plan::Align::kGop;
    if (v.pairing() == v1::PAIRING_FRAME_T_ACTION_T_MINUS_1) {
      out.pairing = plan::Pairing::kFrameTActionTMinus1;
    }
    return out;
  }

  static plan::VideoOutput ConvertVideo(const v1::VideoOutput& v) {
    plan::VideoOutput out{.width = v.width(), .height = v.height()};
    if (v.layout() == v1::LAYOUT_THWC) out.layout = layout::PixelLayout::kThwc;
    if (v.colour() == v1::COLOUR_GRAY) out.colour = layout::Colour::kGray;
    if (v.resize() == v1::RESIZE_LETTERBOX) {
      out.resize = layout::Resize::kLetterbox;
    }
    return out;
  }

  plan::OutputSpec ConvertOutput(const v1::Output& o,
                                 const std::string& field) {
    plan::OutputSpec out{.name = o.name(), .kind = plan::TimesOutput{}};
    if (o.role() == v1::ROLE_TARGET) out.role = plan::TensorRole::kTarget;
    if (o.role() == v1::ROLE_METADATA) out.role = plan::TensorRole::kMetadata;
    switch (o.kind_case()) {
      case v1::Output::kVideo:
        out.kind = ConvertVideo(o.video());
        break;
      case v1::Output::kKeys:
        out.kind = plan::KeysOutput{
            o.keys().track(), {o.keys().keys().begin(), o.keys().keys().end()}};
        break;
      case v1::Output::kMouse:
        out.kind = plan::MouseOutput{o.mouse().track()};
        break;
      case v1::Output::kColumns:
        out.kind = plan::ColumnsOutput{
            o.columns().track(),
            {o.columns().columns().begin(), o.columns().columns().end()}};
        break;
      case v1::Output::kTimes:
        break;
      case v1::Output::KIND_NOT_SET:
        faults_.push_back({field,
                           {.what = "the output does not say what it is",
                            .found = "none of them",
                            .expected = "one of video, keys, mouse, columns, "
                                        "times"}});
    }
    return out;
  }

  std::vector<Fault> faults_;
};

absl::Status Report(const std::vector<Fault>& faults,
                    const Positions& positions) {
  std::vector<std::string> texts;
  for (const Fault& f : faults) {
    Problem p = f.problem;
    p.where = absl::StrCat(positions.Where(f.field), ": ", f.field);
    if (p.action.empty()) p.action = "correct this value";
    texts.emplace_back(
        MakeError(absl::StatusCode::kInvalidArgument, p).message());
  }
  return absl::InvalidArgumentError(absl::StrJoin(texts, "\n"));
}

}  // namespace

absl::StatusOr<plan::FeedSpec> ParseFeed(std::string_view text,
                                         const std::string& file) {
  v1::Feed message;
  PENSTOCK_ASSIGN_OR_RETURN(Positions positions,
                            ParseYaml(text, file, &message));
  Converter converter;
  plan::FeedSpec feed = converter.Convert(message);
  std::vector<Fault> faults = std::move(converter.faults());
  for (Fault& f : plan::CheckFeed(feed)) faults.push_back(std::move(f));
  if (!faults.empty()) return Report(faults, positions);
  plan::SortSources(feed);
  return feed;
}

absl::StatusOr<plan::FeedSpec> LoadFeed(const std::string& path) {
  PENSTOCK_ASSIGN_OR_RETURN(std::string text, ReadYamlFile(path));
  return ParseFeed(text, path);
}

}  // namespace penstock::config
