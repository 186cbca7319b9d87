#include "server/dataset/plan_source.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/feed_file.h"
#include "common/config/yaml_message.h"
#include "common/hash/hash.h"
#include "common/plan/canonical.h"
#include "common/status/status.h"
#include "server/dataset/cache_file.h"

namespace penstock::dataset {
namespace {

// Opens each folder once.
using Opened = std::map<std::string, std::shared_ptr<const Dataset>>;

std::string PathFrom(const std::string& dir, const std::string& path) {
  return path.starts_with('/') || dir.empty() ? path : dir + "/" + path;
}

absl::StatusOr<std::shared_ptr<const Dataset>> OpenOnce(const std::string& path,
                                                        Opened& opened) {
  auto& slot = opened[path];
  if (slot == nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(slot, Dataset::Open(path));
  }
  return slot;
}

absl::Status CheckId(const Dataset& dataset, const std::string& prefix) {
  if (dataset.id().starts_with(prefix)) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      {.where = dataset.dir(),
       .what = "a dataset of another id",
       .found = dataset.id(),
       .expected = prefix + " (dataset_id of the feed)",
       .action =
           "point the source to the dataset it was written for, or change "
           "dataset_id: the data of every step changes with it"});
}

absl::StatusOr<OpenedSource> OpenSource(const plan::SourceSpec& spec,
                                        const std::string& dir,
                                        Opened& opened) {
  OpenedSource s{.name = spec.name};
  PENSTOCK_ASSIGN_OR_RETURN(s.dataset,
                            OpenOnce(PathFrom(dir, spec.dataset), opened));
  PENSTOCK_RETURN_IF_ERROR(CheckId(*s.dataset, spec.dataset_id));
  PENSTOCK_ASSIGN_OR_RETURN(s.captures, s.dataset->Select(spec.filter));
  PENSTOCK_ASSIGN_OR_RETURN(
      s.tracks, s.dataset->FindTracks(s.captures, format::TrackKind::kVideo,
                                      spec.view.track));
  if (!spec.strata.by.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(s.labels,
                              s.dataset->Labels(s.captures, spec.strata.by));
  }
  s.selection = s.dataset->DigestOf(s.captures);
  return s;
}

plan::SourceInput InputOf(const OpenedSource& s) {
  plan::SourceInput input{.index = s.dataset->index(), .labels = s.labels};
  for (std::size_t i = 0; i < s.captures.size(); ++i) {
    input.captures.push_back({s.captures[i], s.tracks[i]});
  }
  return input;
}

std::array<std::uint8_t, 8> Length(std::uint64_t n) {
  std::array<std::uint8_t, 8> out;
  for (int i = 0; i < 8; ++i) out[i] = static_cast<std::uint8_t>(n >> (8 * i));
  return out;
}

Digest256 DigestOfAll(const std::vector<OpenedSource>& sources) {
  hash::Sha256 sha;
  sha.Update(std::string_view("penstock.selections.v1\n"));
  sha.Update(Length(sources.size()));
  for (const OpenedSource& s : sources) {
    sha.Update(Length(s.name.size()));
    sha.Update(s.name);
    sha.Update(hash::Bytes(s.selection));
  }
  return sha.Finish();
}

// B-24: allowed, because each source has its own keyed order, but said.
std::vector<std::string> SharedNotes(const std::vector<OpenedSource>& sources) {
  std::vector<std::string> notes;
  for (std::size_t a = 0; a < sources.size(); ++a) {
    for (std::size_t b = a + 1; b < sources.size(); ++b) {
      if (sources[a].dataset->id() != sources[b].dataset->id()) continue;
      std::vector<std::uint32_t> both;
      std::set_intersection(
          sources[a].captures.begin(), sources[a].captures.end(),
          sources[b].captures.begin(), sources[b].captures.end(),
          std::back_inserter(both));
      notes.push_back(absl::StrCat(
          "sources \"", sources[a].name, "\" and \"", sources[b].name,
          "\" read the same dataset ", sources[a].dataset->id().substr(0, 12),
          "; ", both.size(),
          " captures are in both, each source in its own "
          "order"));
    }
  }
  return notes;
}

// What the packs of a feed depend on.
Digest256 PacksKey(const OpenedFeed& feed) {
  hash::Sha256 sha;
  sha.Update(std::string_view("penstock.packs.v1\n"));
  sha.Update(hash::Bytes(feed.order_digest));
  sha.Update(hash::Bytes(feed.selection_digest));
  for (const OpenedSource& s : feed.sources) sha.Update(s.dataset->id());
  return sha.Finish();
}

absl::Status OpenPacks(OpenedFeed& feed, const std::string& where) {
  if (!feed.planner->packing()) return absl::OkStatus();
  const Digest256 key = PacksKey(feed);
  const std::string folder = CacheFolder();
  auto packs = Packs::Open(
      feed.planner, key,
      folder.empty() ? "" : folder + "/packs-" + hash::Hex(key).substr(0, 32));
  if (!packs.ok()) return Annotate(packs.status(), where);
  feed.packs = *std::move(packs);
  return absl::OkStatus();
}

}  // namespace

template <typename Use>
auto OpenedFeed::With(std::uint64_t packs_wanted, const Use& use) const {
  using Result = decltype(use(static_cast<plan::PackPlan*>(nullptr)));
  return packs == nullptr ? use(nullptr)
                          : Result(packs->With(packs_wanted, use));
}

absl::StatusOr<plan::GlobalBatch> OpenedFeed::PlanStep(Step step) const {
  return With(planner->UnitsBeforeStep({step.value + 1}),
              [&](plan::PackPlan* p) { return planner->PlanStep(step, p); });
}

absl::StatusOr<std::optional<std::uint64_t>> OpenedFeed::ReachStep(
    Step step) const {
  using Total = absl::StatusOr<std::optional<std::uint64_t>>;
  return With(planner->UnitsBeforeStep({step.value + 1}),
              [&](plan::PackPlan* p) { return Total(planner->TotalSteps(p)); });
}

std::optional<std::uint64_t> OpenedFeed::TotalSteps() const {
  // Nothing is counted: it cannot fail.
  using Total = absl::StatusOr<std::optional<std::uint64_t>>;
  return *With(
      0, [&](plan::PackPlan* p) { return Total(planner->TotalSteps(p)); });
}

absl::StatusOr<std::vector<std::uint64_t>> OpenedFeed::CountsBefore(
    Step step) const {
  return With(planner->UnitsBeforeStep(step), [&](plan::PackPlan* p) {
    return planner->CountsBefore(step, p);
  });
}

absl::StatusOr<std::vector<double>> OpenedFeed::AskedBefore(Step step) const {
  return With(planner->UnitsBeforeStep(step),
              [&](plan::PackPlan* p) { return planner->AskedBefore(step, p); });
}

std::string OpenedFeed::StratumOf(const plan::Sample& sample) const {
  using Label = absl::StatusOr<std::string>;
  return *With(0, [&](plan::PackPlan* p) {
    return Label(planner->StratumOf(sample, p));
  });
}

std::string OpenedFeed::IdOf(const plan::Sample& sample) const {
  const OpenedSource& s = sources[sample.source];
  return plan::SampleId(sample, s.name, StratumOf(sample),
                        s.dataset->index().captures[sample.capture].id);
}

absl::StatusOr<OpenedFeed> OpenFeed(std::string_view text,
                                    const std::string& where,
                                    const std::string& dir) {
  PENSTOCK_ASSIGN_OR_RETURN(plan::FeedSpec feed,
                            config::ParseFeed(text, where));
  OpenedFeed out;
  Opened opened;
  std::vector<plan::SourceInput> inputs;
  for (const plan::SourceSpec& spec : feed.sources) {
    auto source = OpenSource(spec, dir, opened);
    if (!source.ok()) {
      return Annotate(source.status(),
                      absl::StrCat(where, ", source \"", spec.name, "\""));
    }
    inputs.push_back(InputOf(*source));
    out.sources.push_back(*std::move(source));
  }
  out.order_digest = plan::OrderDigest(feed);
  out.content_digest = plan::ContentDigest(feed);
  out.selection_digest = DigestOfAll(out.sources);
  auto planner = plan::Planner::Create(std::move(feed), std::move(inputs));
  if (!planner.ok()) return Annotate(planner.status(), where);
  out.planner = std::make_shared<const plan::Planner>(*std::move(planner));
  PENSTOCK_RETURN_IF_ERROR(OpenPacks(out, where));
  out.notes = SharedNotes(out.sources);
  return out;
}

absl::StatusOr<OpenedFeed> OpenFeedFile(const std::string& path) {
  PENSTOCK_ASSIGN_OR_RETURN(std::string text, config::ReadYamlFile(path));
  const std::size_t slash = path.rfind('/');
  return OpenFeed(text, path,
                  slash == std::string::npos ? "" : path.substr(0, slash));
}

}  // namespace penstock::dataset
