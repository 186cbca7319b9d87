#ifndef PENSTOCK_SERVER_DATASET_PLAN_SOURCE_H_
#define PENSTOCK_SERVER_DATASET_PLAN_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/planner.h"
#include "server/dataset/cache_file.h"
#include "server/dataset/dataset.h"
#include "server/dataset/packs.h"

namespace penstock::dataset {

// A source of a feed with its dataset open and its captures selected.
struct OpenedSource {
  std::string name;
  std::shared_ptr<const Dataset> dataset;  // shared by sources of one folder
  std::span<const std::uint32_t> captures;  // selected, in ordinal order
  std::span<const std::uint32_t> tracks;    // video track row of each
  Digest256 selection{};                    // SelectionDigest of the captures
  std::shared_ptr<const void> rows;         // keeps the two: in memory or mapped
};

// Where selections are kept, so that a feed that was opened once is mapped and
// not selected again. Nothing is lost with the files: one that is damaged or of
// something else is made again, and a folder that cannot be written is a note.
struct SelectionCache {
  std::string dir = CacheFolder();  // empty: nowhere
  // Of smaller datasets nothing is kept: selecting is as fast.
  std::uint64_t captures_min = 10'000;
};

// A feed made ready to plan: what `penstock plan`, `penstock feed --local` and
// the daemon start from. Opens no shard.
//
// Threading: immutable, any thread. The planner views the datasets' mappings,
//   which live as long as this.
struct OpenedFeed {
  std::vector<OpenedSource> sources;  // in the order of the planner's feed
  std::shared_ptr<const plan::Planner> planner;
  std::shared_ptr<Packs> packs;  // of a feed with packing, else null
  Digest256 order_digest{}, content_digest{};
  Digest256 selection_digest{};  // over name and selection of every source
  std::vector<std::string>
      notes;  // for people: a dataset used by two sources, …
  bool cached = false;  // the selection was read, not made

  const plan::FeedSpec& feed() const { return planner->feed(); }

  // The planner's calls of these names, with packing on counted packs. Counts
  // what is missing first: that may take long (Packs::SetProgress).
  absl::StatusOr<plan::GlobalBatch> PlanStep(Step step) const;
  std::optional<std::uint64_t> TotalSteps() const;
  // TotalSteps once it is known whether `step` comes before the end.
  absl::StatusOr<std::optional<std::uint64_t>> ReachStep(Step step) const;
  absl::StatusOr<std::vector<std::uint64_t>> CountsBefore(Step step) const;
  absl::StatusOr<std::vector<double>> AskedBefore(Step step) const;

  // plan::SampleId with the names of this feed.
  std::string IdOf(const plan::Sample& sample) const;
  // Label of the sample's stratum; empty without strata.
  std::string StratumOf(const plan::Sample& sample) const;

 private:
  template <typename Use>
  auto With(std::uint64_t packs_wanted, const Use& use) const;
};

// `text` is the feed's YAML, `where` names it in messages, relative dataset
// paths start at `dir`.
//
// kInvalidArgument:    the feed or a filter (with positions); a view that fits
//                      no capture
// kNotFound:           a dataset or track (says which)
// kFailedPrecondition: a dataset of another id than the feed names
// kDataLoss:           a damaged dataset
absl::StatusOr<OpenedFeed> OpenFeed(std::string_view text,
                                    const std::string& where,
                                    const std::string& dir,
                                    const SelectionCache& cache = {});

// The same from a file; relative dataset paths start at its folder, which is made
// absolute.
absl::StatusOr<OpenedFeed> OpenFeedFile(const std::string& path,
                                        const SelectionCache& cache = {});

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_PLAN_SOURCE_H_
