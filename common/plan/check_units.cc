#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/plan/check_faults.h"
#include "common/plan/cost.h"

namespace penstock::plan {
namespace {

bool HasShortWindows(const FeedSpec& feed) {
  const auto is_short = [](const ViewSpec& v) {
    return v.min_frames != 0 && v.min_frames != v.frames;
  };
  return std::any_of(feed.sources.begin(), feed.sources.end(),
                     [&](const SourceSpec& s) { return is_short(s.view); }) ||
         std::any_of(feed.stages.begin(), feed.stages.end(), [&](const StageSpec& t) {
           return std::any_of(
               t.sources.begin(), t.sources.end(),
               [&](const StageSource& s) { return s.view && is_short(*s.view); });
         });
}

void CheckBucket(const FeedSpec& feed, std::size_t i, Faults& faults) {
  const BucketSpec& b = feed.buckets[i];
  const std::string field = At("buckets", i);
  CheckName(field + ".name", b.name, faults);
  faults.Range(field + ".frames", b.frames, 1, kFramesMax);
  faults.Range(field + ".width", b.width, 1, kSideMax);
  faults.Range(field + ".height", b.height, 1, kSideMax);
  faults.Range(field + ".samples", b.samples, 1, kBucketSamplesMax);
  std::uint64_t batch = feed.global_batch;
  for (const StageSpec& s : feed.stages) batch = std::max(batch, s.global_batch);
  if (b.samples <= kBucketSamplesMax && batch <= kGlobalBatchMax &&
      b.samples * batch > kGlobalBatchMax) {
    faults.Add(field + ".samples",
               {.what = "too many samples in a step",
                .found = absl::StrCat(batch, " microbatches of ", b.samples),
                .expected = absl::StrCat("at most ", kGlobalBatchMax, " samples")});
  }
  if ((b.fps.num != 0) != (feed.buckets[0].fps.num != 0)) {
    faults.Add(field + ".fps", {.what = "some buckets name a rate, others do not",
                                .found = b.fps.num != 0 ? "a rate" : "none",
                                .expected = "a rate in all of them or in none"});
  }
}

void CheckBuckets(const FeedSpec& feed, Faults& faults) {
  if (feed.buckets.size() > kBucketsMax) {
    faults.Add("buckets", {.what = "too many buckets",
                           .found = absl::StrCat(feed.buckets.size()),
                           .expected = absl::StrCat("at most ", kBucketsMax)});
    return;
  }
  std::map<std::string, std::size_t> names;
  std::set<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t,
                      std::uint64_t>>
      shapes;
  for (std::size_t i = 0; i < feed.buckets.size(); ++i) {
    const BucketSpec& b = feed.buckets[i];
    CheckBucket(feed, i, faults);
    CheckTwice("buckets", i, b.name, names, faults);
    if (shapes.emplace(b.frames, b.width, b.height, b.fps.num, b.fps.den).second) {
      continue;
    }
    faults.Add(At("buckets", i),
               {.what = "an earlier bucket has the same shape",
                .found = absl::StrCat(b.frames, " frames of ", b.width, "x", b.height),
                .expected = "buckets that differ in frames, size or rate"});
  }
  if (!feed.buckets.empty() && feed.microbatch != 0) {
    faults.Add("microbatch", {.what = "buckets have microbatches of their own",
                              .found = absl::StrCat(feed.microbatch),
                              .expected = "none; `samples` of each bucket"});
  }
}

// The smallest sample that a source may give; its length with nothing but frames.
void CheckSmallest(const FeedSpec& feed, const CostFormula& length, Faults& faults) {
  std::uint64_t least = kFramesMax;
  for (const SourceSpec& s : feed.sources) least = std::min(least, s.view.shortest());
  if (feed.packing.too_long != TooLong::kError) least = 1;
  const std::uint64_t tokens = std::max<std::uint64_t>(
      length.Of({.frames = static_cast<double>(least)}), 1);
  if (tokens > feed.packing.tokens) {
    faults.Add("packing.tokens",
               {.what = "the budget is below the smallest sample",
                .found = absl::StrCat(feed.packing.tokens, " tokens"),
                .expected = absl::StrCat("at least ", tokens, " tokens (", least,
                                         least == 1 ? " frame)" : " frames)")});
  }
  if (feed.packing.too_long == TooLong::kError && feed.packing.frames != 0 &&
      feed.packing.frames < least) {
    faults.Add("packing.frames", {.what = "fewer frames than the smallest sample",
                                  .found = absl::StrCat(feed.packing.frames),
                                  .expected = absl::StrCat("at least ", least)});
  }
  if (feed.packing.frames == 0 &&
      length.Of({.frames = kFramesMax}) <= feed.packing.tokens) {
    faults.Add("packing.frames",
               {.what = "the length does not say how many frames fit",
                .found = "\"" + feed.length + "\"",
                .expected = "frames: the most frames of a pack"});
  }
}

void CheckPacking(const FeedSpec& feed, Faults& faults) {
  const PackingSpec& p = feed.packing;
  faults.Range("packing.tokens", p.tokens, 1, kPackTokensMax);
  faults.Range("packing.window", p.window, 1, kPackWindowMax);
  faults.Range("packing.segments", p.segments, 1, kPackSegmentsMax);
  faults.Range("packing.frames", p.frames, 0, kFramesMax);
  faults.Range("packing.length_multiple", p.length_multiple, 1, kPackTokensMax);
  if (p.length_multiple != 0 && p.tokens % p.length_multiple != 0) {
    faults.Add("packing.tokens",
               {.what = "not a whole multiple of length_multiple",
                .found = absl::StrCat(p.tokens),
                .expected = absl::StrCat("a multiple of ", p.length_multiple)});
  }
  if (!feed.buckets.empty()) {
    faults.Add("packing", {.what = "a unit is a microbatch of a bucket or a pack",
                           .found = "buckets and packing",
                           .expected = "one of them"});
  }
  if (feed.length.empty()) {
    faults.Add("length", {.what = "packing needs the length of a sample",
                          .found = "none",
                          .expected = "a formula of tokens, as \"256*frames\""});
    return;
  }
  const auto length = CostFormula::Parse(feed.length);
  if (length.ok()) CheckSmallest(feed, *length, faults);
}

// What successive chunks in fixed lanes cannot be together with.
void CheckLanes(const FeedSpec& feed, Faults& faults) {
  faults.Range("lanes", feed.lanes, 1, kLanesMax);
  const auto refuse = [&](const char* field, const char* found, bool is) {
    if (!is) return;
    faults.Add(field,
               {.what = "lanes give the chunks of captures in their order",
                .found = absl::StrCat("lanes and ", found),
                .expected = "one of them"});
  };
  refuse("buckets", "buckets", !feed.buckets.empty());
  refuse("packing", "packing", feed.packing.tokens != 0);
  refuse("cut", "a cut other than strided", feed.cut != CutMode::kStrided);
  refuse("mode", "evaluation", feed.mode == Mode::kEvaluation);
  refuse("per", "weights per tokens", feed.per == Per::kTokens);
  refuse("exhaustion", "renormalise",
         feed.exhaustion == Exhaustion::kRenormalise);
  for (std::size_t i = 0; i < feed.sources.size(); ++i) {
    if (feed.sources[i].strata.by.empty()) continue;
    refuse(absl::StrCat(At("sources", i), ".strata").c_str(), "strata", true);
  }
  const auto check_batch = [&](const std::string& field, std::uint64_t batch) {
    if (batch % std::max<std::uint64_t>(feed.lanes, 1) == 0) return;
    faults.Add(field, {.what = "every step has as many chunks of each lane",
                       .found = absl::StrCat(batch),
                       .expected = absl::StrCat("a multiple of ", feed.lanes,
                                                " (lanes)")});
  };
  check_batch("global_batch", feed.global_batch);
  for (std::size_t i = 0; i < feed.stages.size(); ++i) {
    check_batch(At("stages", i) + ".global_batch", feed.stages[i].global_batch);
  }
}

// Tensors that the plan makes itself.
void CheckReserved(const FeedSpec& feed, Faults& faults) {
  const auto& names = PlanTensorNames(feed);
  for (std::size_t i = 0; i < feed.outputs.size(); ++i) {
    const std::string& name = feed.outputs[i].name;
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    faults.Add(At("outputs", i) + ".name",
               {.what = "the name of a tensor that comes along",
                .found = "\"" + name + "\"",
                .expected = "another name"});
  }
}

// Sizes of video outputs come from the buckets, or from the outputs.
void CheckSizes(const FeedSpec& feed, Faults& faults) {
  for (std::size_t i = 0; i < feed.outputs.size(); ++i) {
    const auto* v = std::get_if<VideoOutput>(&feed.outputs[i].kind);
    if (v == nullptr) continue;
    const std::string field = At("outputs", i) + ".video";
    if (feed.buckets.empty()) {
      faults.Range(field + ".width", v->width, 1, kSideMax);
      faults.Range(field + ".height", v->height, 1, kSideMax);
    } else if (v->width != 0 || v->height != 0) {
      faults.Add(field, {.what = "the size of video comes from the buckets",
                         .found = absl::StrCat(v->width, "x", v->height),
                         .expected = "no width and height"});
    }
  }
}

}  // namespace

void CheckUnits(const FeedSpec& feed, Faults& faults) {
  CheckBuckets(feed, faults);
  if (feed.packing.tokens != 0 || feed.packing != PackingSpec{}) {
    CheckPacking(feed, faults);
  }
  if (feed.lanes != 0) CheckLanes(feed, faults);
  CheckSizes(feed, faults);
  CheckReserved(feed, faults);
  if (feed.buckets.empty() && feed.packing.tokens == 0 && HasShortWindows(feed)) {
    faults.Add("sources", {.what = "windows of several lengths in one shape",
                           .found = "min_frames",
                           .expected = "buckets or packing with it"});
  }
  if (!feed.length.empty()) {
    const auto length = CostFormula::Parse(feed.length);
    if (!length.ok()) {
      faults.Add("length", {.what = std::string(length.status().message())});
    }
  } else if (feed.per == Per::kTokens) {
    faults.Add("length", {.what = "weights per tokens need the length of a sample",
                          .found = "none",
                          .expected = "a formula of tokens, as \"256*frames\""});
  }
}

}  // namespace penstock::plan
