#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plan/check_faults.h"
#include "common/plan/cost.h"
#include "common/plan/weights.h"

namespace penstock::plan {
namespace {

void CheckView(const std::string& field, const ViewSpec& v, Faults& faults) {
  faults.Range(field + ".frames", v.frames, 1, kFramesMax);
  faults.Range(field + ".min_frames", v.min_frames, 0, v.frames);
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

}  // namespace

void CheckViewOf(const FeedSpec& feed, const std::string& field,
                 const ViewSpec& v, Faults& faults) {
  CheckView(field, v, faults);
  const std::uint64_t first = feed.sources[0].view.frames;
  if (v.frames == first || !feed.buckets.empty() || feed.packing.tokens != 0) return;
  faults.Add(field + ".frames",
             {.what = "samples of one batch need one length",
              .found = absl::StrCat(v.frames, " frames"),
              .expected = absl::StrCat(first, " frames, as in sources[0]")});
}

namespace {

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

}  // namespace

void CheckCourse(const FeedSpec& feed, Faults& faults) {
  CheckCost(feed, faults);
  CheckMicrobatch(feed, faults);
  if (!feed.sources.empty()) CheckStages(feed, faults);
  CheckSkips(feed, faults);
  CheckModes(feed, faults);
}

}  // namespace penstock::plan
