#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/check_faults.h"
#include "common/plan/feed_spec.h"
#include "common/plan/weights.h"

namespace penstock::plan {
namespace {

bool GoodName(const std::string& name) {
  auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= 64 &&
         std::all_of(name.begin(), name.end(), good);
}

}  // namespace

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

namespace {

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
  void operator()(const VideoOutput&) const {}
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
  faults.Range("microbatch", feed.microbatch, 0, kGlobalBatchMax);
  CheckSources(feed, faults);
  CheckCourse(feed, faults);
  CheckOutputs(feed, faults);
  CheckUnits(feed, faults);
  return faults.Take();
}

absl::Status CheckFeedStatus(const FeedSpec& feed) {
  std::vector<Fault> faults = CheckFeed(feed);
  if (faults.empty()) return absl::OkStatus();
  Problem problem = std::move(faults.front().problem);
  problem.where = "feed, " + faults.front().field;
  if (problem.action.empty()) problem.action = "correct this value";
  return MakeError(absl::StatusCode::kInvalidArgument, problem);
}

std::vector<std::string> PlanTensorNames(const FeedSpec& feed) {
  if (!feed.buckets.empty()) return {"sample_frames"};
  if (feed.lanes != 0) return {"reset"};
  if (feed.packing.tokens == 0) return {};
  return {"segment_ids", "position_ids", "cu_seqlens", "cu_frames"};
}

void SortSources(FeedSpec& feed) {
  std::sort(feed.sources.begin(), feed.sources.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

}  // namespace penstock::plan
