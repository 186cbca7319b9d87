#include "server/dataset/plan_source.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/feed_file.h"
#include "common/config/yaml_message.h"
#include "common/hash/hash.h"
#include "common/plan/canonical.h"
#include "common/status/status.h"
#include "server/dataset/cache_file.h"
#include "server/dataset/selection_cache.h"

namespace penstock::dataset {
namespace {

std::string PathFrom(const std::string& dir, const std::string& path) {
  return path.starts_with('/') || dir.empty() ? path : dir + "/" + path;
}

// The datasets of a feed, each folder opened once.
class Datasets {
 public:
  // `stamps`: of those that were selected from before, else none.
  explicit Datasets(std::map<std::string, DatasetStamp> stamps = {})
      : stamps_(std::move(stamps)) {}

  absl::StatusOr<std::shared_ptr<const Dataset>> Open(const std::string& path) {
    auto& slot = opened_[path];
    if (slot != nullptr) return slot;
    const auto stamp = stamps_.find(path);
    auto made = stamp == stamps_.end() ? Dataset::Open(path)
                                       : Dataset::OpenAs(path, stamp->second);
    if (!made.ok()) return made.status();
    slot = *std::move(made);
    return slot;
  }

 private:
  std::map<std::string, DatasetStamp> stamps_;
  std::map<std::string, std::shared_ptr<const Dataset>> opened_;
};

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

// A source with what it is planned from.
struct Selected {
  OpenedSource source;
  plan::SourceInput input;
};

struct SelectedRows {
  std::vector<std::uint32_t> captures, tracks;
};

absl::StatusOr<Selected> Select(const plan::SourceSpec& spec,
                                const std::string& dir, Datasets& datasets) {
  Selected out{.source = {.name = spec.name}};
  OpenedSource& s = out.source;
  PENSTOCK_ASSIGN_OR_RETURN(s.dataset,
                            datasets.Open(PathFrom(dir, spec.dataset)));
  PENSTOCK_RETURN_IF_ERROR(CheckId(*s.dataset, spec.dataset_id));
  auto rows = std::make_shared<SelectedRows>();
  PENSTOCK_ASSIGN_OR_RETURN(rows->captures, s.dataset->Select(spec.filter));
  PENSTOCK_ASSIGN_OR_RETURN(
      rows->tracks, s.dataset->FindTracks(
                        rows->captures, format::TrackKind::kVideo, spec.view.track));
  s.captures = rows->captures;
  s.tracks = rows->tracks;
  s.rows = std::move(rows);
  s.selection = s.dataset->DigestOf(s.captures);
  out.input.index = s.dataset->index();
  if (!spec.strata.by.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(out.input.labels,
                              s.dataset->Labels(s.captures, spec.strata.by));
  }
  out.input.captures.reserve(s.captures.size());
  for (std::size_t i = 0; i < s.captures.size(); ++i) {
    out.input.captures.push_back({s.captures[i], s.tracks[i]});
  }
  return out;
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

constexpr std::size_t kPairsSaidOf = 4;  // sources of one dataset

std::string PairNote(const OpenedSource& a, const OpenedSource& b) {
  std::vector<std::uint32_t> both;
  std::set_intersection(a.captures.begin(), a.captures.end(), b.captures.begin(),
                        b.captures.end(), std::back_inserter(both));
  return absl::StrCat("sources \"", a.name, "\" and \"", b.name,
                      "\" read the same dataset ", a.dataset->id().substr(0, 12),
                      "; ", both.size(),
                      " captures are in both, each source in its own order");
}

std::string ManyNote(std::span<const OpenedSource* const> sources) {
  const Dataset& dataset = *sources[0]->dataset;
  std::vector<bool> once(dataset.index().captures.size());
  std::vector<bool> again(once.size());
  for (const OpenedSource* s : sources) {
    for (const std::uint32_t c : s->captures) {
      if (once[c]) again[c] = true;
      once[c] = true;
    }
  }
  return absl::StrCat(sources.size(), " sources read the same dataset ",
                      dataset.id().substr(0, 12), "; ",
                      std::count(again.begin(), again.end(), true),
                      " captures are in more than one, each source in its own "
                      "order");
}

// B-24: allowed, because each source has its own keyed order, but said.
std::vector<std::string> SharedNotes(const std::vector<OpenedSource>& sources) {
  std::map<std::string, std::vector<const OpenedSource*>> of_dataset;
  for (const OpenedSource& s : sources) of_dataset[s.dataset->id()].push_back(&s);
  std::vector<std::string> notes;
  for (const auto& [id, readers] : of_dataset) {
    if (readers.size() > kPairsSaidOf) {
      notes.push_back(ManyNote(readers));
      continue;
    }
    for (std::size_t a = 0; a < readers.size(); ++a) {
      for (std::size_t b = a + 1; b < readers.size(); ++b) {
        notes.push_back(PairNote(*readers[a], *readers[b]));
      }
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

absl::Status OpenPacks(OpenedFeed& feed, const std::string& folder,
                       const std::string& where) {
  if (!feed.planner->packing()) return absl::OkStatus();
  const Digest256 key = PacksKey(feed);
  auto packs = Packs::Open(
      feed.planner, key,
      folder.empty() ? "" : folder + "/packs-" + hash::Hex(key).substr(0, 32));
  if (!packs.ok()) return Annotate(packs.status(), where);
  feed.packs = *std::move(packs);
  return absl::OkStatus();
}

// Makes the planner of what was selected.
absl::Status Finish(OpenedFeed& out, const plan::FeedSpec& feed,
                    std::vector<Selected> selected, const std::string& where) {
  std::vector<plan::SourceInput> inputs;
  for (Selected& s : selected) {
    out.sources.push_back(std::move(s.source));
    inputs.push_back(std::move(s.input));
  }
  out.order_digest = plan::OrderDigest(feed);
  out.content_digest = plan::ContentDigest(feed);
  out.selection_digest = DigestOfAll(out.sources);
  auto planner = plan::Planner::Create(feed, std::move(inputs));
  if (!planner.ok()) return Annotate(planner.status(), where);
  out.planner = std::make_shared<const plan::Planner>(*std::move(planner));
  return absl::OkStatus();
}

absl::StatusOr<OpenedFeed> Make(const plan::FeedSpec& feed,
                                const std::string& where,
                                const std::string& dir) {
  Datasets datasets;
  std::vector<Selected> selected;
  for (const plan::SourceSpec& spec : feed.sources) {
    auto source = Select(spec, dir, datasets);
    if (!source.ok()) {
      return Annotate(source.status(),
                      absl::StrCat(where, ", source \"", spec.name, "\""));
    }
    selected.push_back(*std::move(source));
  }
  OpenedFeed out;
  PENSTOCK_RETURN_IF_ERROR(Finish(out, feed, std::move(selected), where));
  out.notes = SharedNotes(out.sources);
  return out;
}

// The views that a feed gives a source, each once.
std::vector<plan::ViewSpec> ViewsOf(const plan::FeedSpec& feed,
                                    const plan::SourceSpec& source) {
  std::vector<plan::ViewSpec> out = {source.view};
  for (const plan::StageSpec& stage : feed.stages) {
    for (const plan::StageSource& s : stage.sources) {
      if (s.name != source.name || !s.view) continue;
      if (std::find(out.begin(), out.end(), *s.view) == out.end()) {
        out.push_back(*s.view);
      }
    }
  }
  return out;
}

// Packs find out late when a stage begins: its lineages are made then, of the
// captures.
bool MayKeep(const plan::FeedSpec& feed) {
  if (feed.packing.tokens == 0) return true;
  return std::all_of(
      feed.sources.begin(), feed.sources.end(),
      [&](const auto& s) { return ViewsOf(feed, s).size() == 1; });
}

// A feed's place in the cache.
struct Kept {
  std::string path;
  Digest256 key{};
  std::map<std::string, DatasetStamp> stamps;  // by folder
};

void Add(hash::Sha256& sha, std::string_view text) {
  sha.Update(Length(text.size()));
  sha.Update(text);
}

void Add(hash::Sha256& sha, const DatasetStamp& s) {
  for (const std::uint64_t n :
       {s.manifest_bytes, s.index_bytes, s.catalog_bytes,
        static_cast<std::uint64_t>(s.index_time_ns),
        static_cast<std::uint64_t>(s.catalog_time_ns)}) {
    sha.Update(Length(n));
  }
  Add(sha, hash::Hex(s.manifest_xxh3));
}

// The name tells the feed and its datasets, the key also that these are as they
// were. None: a dataset that cannot be read, which Make() will say.
std::optional<Kept> PlaceOf(const plan::FeedSpec& feed, const std::string& dir,
                            const std::string& folder) {
  if (folder.empty() || !MayKeep(feed)) return std::nullopt;
  Kept out;
  hash::Sha256 name, key;
  name.Update(std::string_view("penstock.selection.cache\n"));
  name.Update(Length(kSelectionCacheVersion));
  name.Update(hash::Bytes(plan::OrderDigest(feed)));
  for (const plan::SourceSpec& s : feed.sources) {
    const std::string path = PathFrom(dir, s.dataset);
    auto stamp = out.stamps.find(path);
    if (stamp == out.stamps.end()) {
      auto read = DatasetStamp::Of(path);
      if (!read.ok()) return std::nullopt;
      stamp = out.stamps.emplace(path, *std::move(read)).first;
    }
    Add(name, s.name);
    Add(name, s.filter);
    Add(name, stamp->second.id);
    Add(key, stamp->second);
  }
  const Digest256 named = name.Finish();
  key.Update(hash::Bytes(named));
  out.key = key.Finish();
  out.path = absl::StrCat(folder, "/selection-", hash::Hex(named).substr(0, 32));
  return out;
}

absl::StatusOr<Selected> FromCache(const plan::FeedSpec& feed,
                                   const plan::SourceSpec& spec,
                                   const CachedSource& cached,
                                   const std::shared_ptr<const void>& rows,
                                   const std::string& dir, Datasets& datasets) {
  Selected out{.source = {.name = spec.name,
                          .captures = cached.captures,
                          .tracks = cached.tracks,
                          .selection = cached.selection,
                          .rows = rows}};
  PENSTOCK_ASSIGN_OR_RETURN(out.source.dataset,
                            datasets.Open(PathFrom(dir, spec.dataset)));
  PENSTOCK_RETURN_IF_ERROR(CheckId(*out.source.dataset, spec.dataset_id));
  out.input.index = out.source.dataset->index();
  const auto views = ViewsOf(feed, spec);
  const bool evaluation = feed.mode == plan::Mode::kEvaluation;
  for (const auto& [view, lineage] : cached.lineages) {
    if (view >= views.size()) return absl::DataLossError("no such view");
    PENSTOCK_ASSIGN_OR_RETURN(
        plan::Lineage made,
        plan::Lineage::FromRows(
            views[view], evaluation ? plan::StrataSpec{} : spec.strata,
            feed.buckets, lineage, out.input.index, rows, spec.name));
    out.input.made.emplace_back(
        views[view], std::make_shared<const plan::Lineage>(std::move(made)));
  }
  return out;
}

// None when there is nothing good.
std::optional<OpenedFeed> Reopen(const plan::FeedSpec& feed, const Kept& kept,
                                 const std::string& where,
                                 const std::string& dir) {
  auto cached = ReadSelection(kept.path, kept.key);
  if (!cached || cached->sources.size() != feed.sources.size()) return std::nullopt;
  Datasets datasets(kept.stamps);
  std::vector<Selected> selected;
  for (std::size_t i = 0; i < feed.sources.size(); ++i) {
    const CachedSource& source = cached->sources[i];
    if (source.name != feed.sources[i].name ||
        source.captures.size() != source.tracks.size()) {
      return std::nullopt;
    }
    auto s = FromCache(feed, feed.sources[i], source, cached->file, dir, datasets);
    if (!s.ok()) return std::nullopt;
    selected.push_back(*std::move(s));
    cached->file->Release();  // looked through once
  }
  OpenedFeed out;
  if (!Finish(out, feed, std::move(selected), where).ok()) return std::nullopt;
  out.notes = std::move(cached->notes);
  out.cached = true;
  cached->file->Release();
  return out;
}

// The lineages that the planner made, as rows.
CachedSelection RowsOf(const OpenedFeed& opened) {
  CachedSelection out{.notes = opened.notes};
  for (const OpenedSource& s : opened.sources) {
    out.sources.push_back({.name = s.name,
                           .selection = s.selection,
                           .captures = s.captures,
                           .tracks = s.tracks});
  }
  const plan::FeedSpec& feed = opened.feed();
  const auto& lineages = opened.planner->stream()->lineages();
  std::size_t next = 0;
  if (feed.mode == plan::Mode::kEvaluation) {
    for (std::size_t i = 0; i < feed.sources.size(); ++i) {
      if (feed.sources[i].weight.nanos == 0) continue;
      out.sources[i].lineages.emplace_back(0, lineages[next++]->rows());
    }
    return out;
  }
  for (const auto& [source, view] : opened.planner->schedule().views()) {
    const auto views = ViewsOf(feed, feed.sources[source]);
    const auto number = std::find(views.begin(), views.end(), view) - views.begin();
    out.sources[source].lineages.emplace_back(static_cast<std::uint32_t>(number),
                                              lineages[next++]->rows());
  }
  return out;
}

void Keep(OpenedFeed& opened, const Kept& kept, const SelectionCache& cache) {
  std::uint64_t captures = 0;
  for (const OpenedSource& s : opened.sources) {
    // Replaced since it was stamped.
    const auto& stamps = kept.stamps;
    const auto stamp = stamps.find(s.dataset->dir());
    if (stamp == stamps.end() || stamp->second.id != s.dataset->id()) return;
    captures = std::max<std::uint64_t>(captures, s.dataset->index().captures.size());
  }
  if (captures < cache.captures_min) return;
  const absl::Status status =
      KeepFile(kept.path, EncodeSelection(kept.key, RowsOf(opened)));
  if (status.ok()) return;
  opened.notes.push_back(absl::StrCat(
      "the selection is not kept, each start selects again: ",
      std::string(status.message())));
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
                                    const std::string& dir,
                                    const SelectionCache& cache) {
  PENSTOCK_ASSIGN_OR_RETURN(const plan::FeedSpec feed,
                            config::ParseFeed(text, where));
  const std::optional<Kept> kept = PlaceOf(feed, dir, cache.dir);
  std::optional<OpenedFeed> out;
  if (kept) out = Reopen(feed, *kept, where, dir);
  if (!out) {
    PENSTOCK_ASSIGN_OR_RETURN(out, Make(feed, where, dir));
    if (kept) Keep(*out, *kept, cache);
  }
  PENSTOCK_RETURN_IF_ERROR(OpenPacks(*out, cache.dir, where));
  return *std::move(out);
}

absl::StatusOr<OpenedFeed> OpenFeedFile(const std::string& path,
                                        const SelectionCache& cache) {
  PENSTOCK_ASSIGN_OR_RETURN(std::string text, config::ReadYamlFile(path));
  // Absolute, as clients send it: a message is the same wherever it comes from.
  std::error_code error;
  const auto dir = std::filesystem::absolute(path, error).parent_path();
  if (error) return ErrnoError(error.value(), path);
  return OpenFeed(text, path, dir.string(), cache);
}

}  // namespace penstock::dataset
