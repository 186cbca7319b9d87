#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/cost.h"
#include "common/plan/feed_spec.h"
#include "common/plan/weights.h"

namespace penstock::plan {
namespace {

// Collects faults under a field path.
class Faults {
 public:
  void Add(std::string field, Problem problem) {
    faults_.push_back({std::move(field), std::move(problem)});
  }
  void Range(const std::string& field, std::uint64_t v, std::uint64_t low,
             std::uint64_t high) {
    if (v >= low && v <= high) return;
    Add(field, {.what = "out of range",
                .found = absl::StrCat(v),
                .expected = absl::StrCat(low, " to ", high)});
  }
  std::vector<Fault> Take() { return std::move(faults_); }

 private:
  std::vector<Fault> faults_;
};

std::string At(const char* list, std::size_t i) {
  return absl::StrCat(list, "[", i, "]");
}

// Names are parts of sample ids, metrics and messages.
bool GoodName(const std::string& name) {
  auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= 64 &&
         std::all_of(name.begin(), name.end(), good);
}

void CheckName(const std::string& field, const std::string& name,
               Faults& faults) {
  if (GoodName(name)) return;
  faults.Add(field, {.what = name.empty() ? "a name is missing" : "bad name",
                     .found = "\"" + name.substr(0, 80) + "\"",
                     .expected = "1 to 64 letters, digits, '_', '-' or '.'"});
}

void CheckTwice(const char* list, std::size_t i, const std::string& name,
                std::map<std::string, std::size_t>& seen, Faults& faults) {
  auto [it, fresh] = seen.emplace(name, i);
  if (fresh || name.empty()) return;
  faults.Add(
      At(list, i) + ".name",
      {.what = absl::StrCat("the name \"", name, "\" is taken by ",
                            At(list, it->second)),
       .found = "\"" + name + "\" twice",
       .expected = "names that differ",
       .action = "give each its own name: order and mixture are keyed by "
                 "it"});
}

void CheckView(const std::string& field, const ViewSpec& v, Faults& faults) {
  faults.Range(field + ".frames", v.frames, 1, kFramesMax);
  faults.Range(field + ".hop", v.hop, 0, kHopMax);
  const bool fps = v.fps.num != 0;
  if (!fps) faults.Range(field + ".stride", v.stride, 1, kStrideMax);
  if (fps && v.stride != 0) {
    faults.Add(field + ".stride",
               {.what = "stride and fps are both given",
                .found = "both",
                .expected = "one of them",
                .action = "keep one: stride counts frames of the track, fps "
                          "derives it from the track's rate"});
  }
}

void CheckViewOf(const FeedSpec& feed, const std::string& field,
                 const ViewSpec& v, Faults& faults) {
  CheckView(field, v, faults);
  const std::uint64_t first = feed.sources[0].view.frames;
  if (v.frames == first) return;
  faults.Add(field + ".frames",
             {.what = "samples of one batch need one length",
              .found = absl::StrCat(v.frames, " frames"),
              .expected = absl::StrCat(first, " frames, as in sources[0]")});
}

bool GoodColumn(const std::string& name) {
  static const std::set<std::string> kColumns = {"title", "session", "player",
                                                 "resolution", "fps"};
  constexpr std::string_view kCondition = "condition.";
  return kColumns.contains(name) ||
         (name.starts_with(kCondition) && name.size() > kCondition.size());
}

void CheckStrata(const std::string& field, const StrataSpec& s, Faults& faults) {
  if (s.by.size() > kStrataColumnsMax) {
    faults.Add(field + ".by", {.what = "too many columns",
                               .found = absl::StrCat(s.by.size()),
                               .expected = absl::StrCat("at most ", kStrataColumnsMax)});
  }
  for (std::size_t i = 0; i < s.by.size(); ++i) {
    if (GoodColumn(s.by[i])) continue;
    faults.Add(absl::StrCat(field, ".by[", i, "]"),
               {.what = "no such column",
                .found = "\"" + s.by[i].substr(0, 80) + "\"",
                .expected = "title, session, player, resolution, fps or "
                            "condition.KEY"});
  }
  if (s.by.empty() && (s.mode != StrataMode::kProportional || !s.weights.empty())) {
    faults.Add(field + ".by", {.what = "strata need columns",
                               .found = "none",
                               .expected = "at least one, as [title]"});
  }
  if ((s.mode == StrataMode::kExplicit) == s.weights.empty() && !s.by.empty()) {
    faults.Add(field + ".weights",
               {.what = "weights belong to mode explicit, and it needs them",
                .found = absl::StrCat(s.weights.size(), " weights"),
                .expected = s.weights.empty() ? "a weight for every group"
                                              : "none in this mode"});
  }
  if (s.temperature.nanos == 0) {
    faults.Add(field + ".temperature", {.what = "out of range",
                                        .found = "0",
                                        .expected = "above 0; 1 is proportional"});
  }
}

bool GoodIdPrefix(const std::string& id) {
  auto hex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  };
  return id.empty() || (id.size() >= 12 && id.size() <= 64 &&
                        std::all_of(id.begin(), id.end(), hex));
}

void CheckSource(const FeedSpec& feed, std::size_t i, Faults& faults) {
  const SourceSpec& s = feed.sources[i];
  const std::string field = At("sources", i);
  CheckName(field + ".name", s.name, faults);
  if (s.dataset.empty()) {
    faults.Add(field + ".dataset", {.what = "the source names no dataset",
                                     .found = "\"\"",
                                     .expected = "the folder of a dataset"});
  }
  if (!GoodIdPrefix(s.dataset_id)) {
    faults.Add(field + ".dataset_id",
               {.what = "not a dataset id",
                .found = s.dataset_id.substr(0, 80),
                .expected = "12 to 64 lower-case hex digits"});
  }
  CheckViewOf(feed, field + ".view", s.view, faults);
  CheckStrata(field + ".strata", s.strata, faults);
  faults.Range(field + ".epochs", s.epochs, 0, kEpochsMax);
}

void CheckSources(const FeedSpec& feed, Faults& faults) {
  if (feed.sources.empty() || feed.sources.size() > kSourcesMax) {
    faults.Add("sources", {.what = "a feed needs sources",
                           .found = absl::StrCat(feed.sources.size()),
                           .expected = absl::StrCat("1 to ", kSourcesMax)});
    return;
  }
  std::map<std::string, std::size_t> seen;
  std::vector<Decimal> weights;
  for (std::size_t i = 0; i < feed.sources.size(); ++i) {
    CheckSource(feed, i, faults);
    CheckTwice("sources", i, feed.sources[i].name, seen, faults);
    weights.push_back(feed.sources[i].weight);
  }
  if (auto rounding = RoundWeights(weights); !rounding.ok()) {
    const auto& f = rounding.fault;
    faults.Add(
        f.source < 0
            ? "sources"
            : At("sources", static_cast<std::size_t>(f.source)) + ".weight",
        f.problem);
  }
}

void CheckStageSource(const FeedSpec& feed, const std::string& field,
                      const StageSource& s, Faults& faults) {
  const bool known =
      std::any_of(feed.sources.begin(), feed.sources.end(),
                  [&](const SourceSpec& f) { return f.name == s.name; });
  if (!known) {
    faults.Add(field + ".name",
               {.what = "no such source",
                .found = "\"" + s.name.substr(0, 80) + "\"",
                .expected = "the name of one of the feed's sources",
                .action = "list it under sources too; weight 0 keeps it out until "
                          "a stage gives it one"});
  }
  if (!s.view) return;
  CheckViewOf(feed, field + ".view", *s.view, faults);
  for (const SourceSpec& f : feed.sources) {
    if (f.name != s.name || (f.view.track == s.view->track &&
                             f.view.pairing == s.view->pairing)) {
      continue;
    }
    faults.Add(field + ".view",
               {.what = "a stage keeps the track and the pairing of its source",
                .found = "another track or pairing",
                .expected = "those of the source",
                .action = "leave them out, or make it a source of its own"});
  }
}

// The weights that hold from each stage on.
void CheckStageWeights(const FeedSpec& feed, Faults& faults) {
  std::vector<Decimal> weights;
  for (const SourceSpec& s : feed.sources) weights.push_back(s.weight);
  for (std::size_t i = 0; i < feed.stages.size(); ++i) {
    for (const StageSource& c : feed.stages[i].sources) {
      for (std::size_t s = 0; s < feed.sources.size(); ++s) {
        if (c.weight && feed.sources[s].name == c.name) weights[s] = *c.weight;
      }
    }
    if (auto rounding = RoundWeights(weights); !rounding.ok()) {
      faults.Add(At("stages", i) + ".sources", rounding.fault.problem);
    }
  }
}

void CheckStages(const FeedSpec& feed, Faults& faults) {
  if (feed.stages.size() > kStagesMax) {
    faults.Add("stages", {.what = "too many stages",
                          .found = absl::StrCat(feed.stages.size()),
                          .expected = absl::StrCat("at most ", kStagesMax)});
    return;
  }
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < feed.stages.size(); ++i) {
    const StageSpec& stage = feed.stages[i];
    const std::string field = At("stages", i);
    if (stage.step <= before || stage.step >= kStepMax) {
      faults.Add(field + ".step",
                 {.what = "stages are in the order of their steps",
                  .found = absl::StrCat(stage.step),
                  .expected = absl::StrCat(before + 1, " to ", kStepMax - 1)});
    }
    before = std::max(before, stage.step);
    faults.Range(field + ".global_batch", stage.global_batch, 0, kGlobalBatchMax);
    for (std::size_t s = 0; s < stage.sources.size(); ++s) {
      CheckStageSource(feed, absl::StrCat(field, ".sources[", s, "]"),
                       stage.sources[s], faults);
    }
  }
  CheckStageWeights(feed, faults);
}

void CheckSkips(const FeedSpec& feed, Faults& faults) {
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < feed.skip.size() && i < kSkipsMax; ++i) {
    const SkipSpec& s = feed.skip[i];
    if (s.from < before || s.to <= s.from || s.to >= kStepMax) {
      faults.Add(At("skip", i),
                 {.what = "skipped ranges are in order and not empty",
                  .found = absl::StrCat(s.from, " to ", s.to),
                  .expected = absl::StrCat("from at ", before,
                                           " or later, to above from")});
    }
    before = std::max(before, s.to);
  }
  if (feed.skip.size() > kSkipsMax) {
    faults.Add("skip", {.what = "too many ranges",
                        .found = absl::StrCat(feed.skip.size()),
                        .expected = absl::StrCat("at most ", kSkipsMax)});
  }
}

// Fields that contradict each other.
void CheckModes(const FeedSpec& feed, Faults& faults) {
  const bool limited =
      feed.epochs != 0 ||
      std::any_of(feed.sources.begin(), feed.sources.end(),
                  [](const SourceSpec& s) { return s.epochs != 0; });
  if (feed.mode == Mode::kEvaluation) {
    const bool plain =
        !limited && feed.stages.empty() && feed.skip.empty() &&
        std::all_of(feed.sources.begin(), feed.sources.end(), [](const auto& s) {
          return s.strata.by.empty() && (s.weight == kOne || s.weight.nanos == 0);
        });
    if (!plain) {
      faults.Add("mode", {.what = "evaluation takes every sample exactly once",
                          .found = "epochs, stages, skip, strata or weights",
                          .expected = "none of them; weight 0 leaves a source out"});
    }
    return;
  }
  if (limited == (feed.exhaustion == Exhaustion::kRepeat)) {
    faults.Add("exhaustion",
               {.what = limited ? "repeat never ends, but there is a limit"
                                : "nothing is ever exhausted without a limit",
                .found = limited ? "epochs" : "no epochs",
                .expected = limited ? "stop or renormalise, or no epochs"
                                    : "epochs of the feed or of a source"});
  }
}

void CheckCost(const FeedSpec& feed, Faults& faults) {
  const auto formula = CostFormula::Parse(feed.cost);
  if (formula.ok()) return;
  faults.Add("cost", {.what = std::string(formula.status().message())});
}

void CheckMicrobatch(const FeedSpec& feed, Faults& faults) {
  if (feed.microbatch == 0 || feed.uneven == Uneven::kMask ||
      feed.mode == Mode::kEvaluation) {
    return;
  }
  std::vector<std::uint64_t> batches = {feed.global_batch};
  for (const StageSpec& s : feed.stages) {
    if (s.global_batch != 0) batches.push_back(s.global_batch);
  }
  for (const std::uint64_t batch : batches) {
    if (batch % feed.microbatch == 0) continue;
    faults.Add("microbatch", {.what = "does not divide the global batch",
                              .found = absl::StrCat(feed.microbatch),
                              .expected = absl::StrCat("a divisor of ", batch)});
  }
}

void CheckNames(const std::string& field, const std::vector<std::string>& names,
                Faults& faults) {
  std::set<std::string> seen;
  if (names.empty() || names.size() > 4096) {
    faults.Add(field, {.what = "the list is empty or too long",
                       .found = absl::StrCat(names.size()),
                       .expected = "1 to 4096"});
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty() && seen.insert(names[i]).second) continue;
    faults.Add(absl::StrCat(field, "[", i, "]"),
               {.what = names[i].empty() ? "empty name" : "listed twice",
                .found = "\"" + names[i].substr(0, 80) + "\"",
                .expected = "names that differ"});
  }
}

struct OutputCheck {
  std::string field;
  Faults& faults;
  void operator()(const VideoOutput& v) const {
    faults.Range(field + ".video.width", v.width, 1, kSideMax);
    faults.Range(field + ".video.height", v.height, 1, kSideMax);
  }
  void operator()(const KeysOutput& k) const {
    CheckNames(field + ".keys.keys", k.keys, faults);
  }
  void operator()(const ColumnsOutput& c) const {
    CheckNames(field + ".columns.columns", c.columns, faults);
  }
  void operator()(const MouseOutput&) const {}
  void operator()(const TimesOutput&) const {}
};

void CheckOutputs(const FeedSpec& feed, Faults& faults) {
  if (feed.outputs.empty() || feed.outputs.size() > kOutputsMax) {
    faults.Add("outputs", {.what = "a feed needs outputs: tensors to make",
                           .found = absl::StrCat(feed.outputs.size()),
                           .expected = absl::StrCat("1 to ", kOutputsMax)});
  }
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < feed.outputs.size(); ++i) {
    const std::string field = At("outputs", i);
    CheckName(field + ".name", feed.outputs[i].name, faults);
    CheckTwice("outputs", i, feed.outputs[i].name, seen, faults);
    std::visit(OutputCheck{field, faults}, feed.outputs[i].kind);
  }
}

}  // namespace

std::vector<Fault> CheckFeed(const FeedSpec& feed) {
  Faults faults;
  CheckName("name", feed.name, faults);
  faults.Range("global_batch", feed.global_batch, 1, kGlobalBatchMax);
  faults.Range("epochs", feed.epochs, 0, kEpochsMax);
  CheckCost(feed, faults);
  faults.Range("microbatch", feed.microbatch, 0, kGlobalBatchMax);
  CheckMicrobatch(feed, faults);
  CheckSources(feed, faults);
  if (!feed.sources.empty()) CheckStages(feed, faults);
  CheckSkips(feed, faults);
  CheckModes(feed, faults);
  CheckOutputs(feed, faults);
  return faults.Take();
}

absl::Status CheckFeedStatus(const FeedSpec& feed) {
  std::vector<Fault> faults = CheckFeed(feed);
  if (faults.empty()) return absl::OkStatus();
  Problem problem = std::move(faults.front().problem);
  problem.where = "feed, " + faults.front().field;
  return MakeError(absl::StatusCode::kInvalidArgument, problem);
}

void SortSources(FeedSpec& feed) {
  std::sort(feed.sources.begin(), feed.sources.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

}  // namespace penstock::plan
