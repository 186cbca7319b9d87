#ifndef PENSTOCK_COMMON_PLAN_LINEAGE_H_
#define PENSTOCK_COMMON_PLAN_LINEAGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/feed_spec.h"
#include "common/plan/mixture.h"
#include "common/plan/pool.h"
#include "common/random/prf.h"

namespace penstock::plan {

class Lineage;

// What a Lineage holds (ViewRows): the pools of its strata, by label.
struct LineageRows {
  struct Stratum {
    std::string label;
    PoolRows pool;
  };
  std::vector<Stratum> strata;
};

// What a source is planned from.
struct SourceInput {
  format::CaptureIndexView index;
  std::vector<SelectedCapture> captures;  // in the order of the selection
  // Of each capture, when the source has strata: the values of their columns
  // joined by "|".
  std::vector<std::string> labels;
  // Lineages that were made before, by view; others are made of the captures.
  std::vector<std::pair<ViewSpec, std::shared_ptr<const Lineage>>> made;

  // Null: make it.
  std::shared_ptr<const Lineage> Made(const ViewSpec& view) const {
    for (const auto& [of, lineage] : made) {
      if (of == view) return lineage;
    }
    return nullptr;
  }
};

// A source under one view: its units in order, for ever. Without strata draw r is
// unit r of its pool; with strata a mixture of its own gives each draw to a stratum,
// which passes over its pool at its own pace.
//
// Threading: immutable, any thread. Ownership: as View.
// Bounds: a Pool a stratum, 640 KiB for the mixture of strata; calls as Pool's, but
//   those that say O(strata).
class Lineage {
 public:
  struct Stratum {
    std::string label;  // empty: the source has none
    Pool pool;
    std::uint32_t quota = kMixturePeriod;
  };
  // Where a draw goes: a unit of a stratum's pool.
  struct Draw {
    std::uint32_t stratum = 0;
    std::uint64_t unit = 0;
  };

  // `where` names source and dataset in messages.
  //
  // kInvalidArgument: as Pool::Create and StrataQuotas; more than kStrataMax
  static absl::StatusOr<Lineage> Create(const ViewSpec& view,
                                        const StrataSpec& strata,
                                        std::span<const BucketSpec> buckets,
                                        const SourceInput& input,
                                        std::string_view where);

  // The lineage that rows() gave, of the same feed. Errors: as Create, Pool::FromRows
  static absl::StatusOr<Lineage> FromRows(const ViewSpec& view,
                                          const StrataSpec& strata,
                                          std::span<const BucketSpec> buckets,
                                          const LineageRows& rows,
                                          const format::CaptureIndexView& index,
                                          const std::shared_ptr<const void>& owner,
                                          std::string_view where);
  LineageRows rows() const;

  Draw At(std::uint64_t rank) const {
    if (!inner_) return {0, rank};
    const Mixture::Slot slot = inner_->At(rank);
    return {slot.source, slot.rank};
  }

  std::uint64_t size() const { return size_; }  // samples of all strata
  const std::vector<Stratum>& strata() const { return strata_; }

  // Draws before one would begin pass number `passes` (from 0) of a stratum;
  // UINT64_MAX: too many to count. O(strata)
  std::uint64_t DrawsWithin(std::uint64_t passes) const;
  // Passes that `draws` draws have begun, of the stratum with the most. O(strata)
  std::uint64_t PassesBegun(std::uint64_t draws) const;
  // Draws of a stratum among the first `draws`.
  std::uint64_t CountBefore(std::uint32_t stratum, std::uint64_t draws) const {
    return inner_ ? inner_->CountBefore(stratum, draws) : draws;
  }

 private:
  absl::Status Add(std::string label, Pool pool, std::string_view where);
  absl::Status Weigh(const StrataSpec& strata, std::string_view where);

  std::vector<Stratum> strata_;  // by label
  std::optional<Mixture> inner_;
  std::uint64_t size_ = 0;
};

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_LINEAGE_H_
