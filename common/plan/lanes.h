#ifndef PENSTOCK_COMMON_PLAN_LANES_H_
#define PENSTOCK_COMMON_PLAN_LANES_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/feed_spec.h"
#include "common/plan/lineage.h"

namespace penstock::plan {

// Lanes for long contexts: each belongs to one source and gives the chunks (windows)
// of its captures one after the other, capture by capture, for ever.
//
// Lanes of a source: its share of all, by largest remainder; lane by lane the sources
// are evenly merged, the i-th of c by rising (2i+1)/2c. Captures of a source: by
// falling number of chunks, at equal ones in keyed order (sequential: as selected),
// each to its source's lane with the fewest chunks so far, of equal ones the first.
// A lane passes over its captures in a keyed order of its own, another in each pass
// (sequential: as selected).
//
// Threading: immutable, any thread. Ownership: shares the lineages.
// Bounds: 4 bytes a capture; At is O(captures of the lane).
class LaneDeal {
 public:
  struct Source {
    std::shared_ptr<const Lineage> lineage;  // null: no lanes
    std::uint64_t epoch = 0;                 // that its pass 0 is
  };
  struct Chunk {
    std::uint32_t source = 0;
    std::uint64_t pass = 0;
    std::uint64_t window = 0;  // of the lineage's view
    bool reset = false;        // it does not go on from the lane's chunk before it
  };

  // Lanes of each source by its quota of kMixturePeriod.
  static std::vector<std::uint32_t> LanesOf(std::span<const std::uint32_t> quotas,
                                            std::uint32_t lanes);

  // `lanes` of each source; the feed gives names, seed and order.
  //
  // kInvalidArgument: a source with fewer captures than lanes (names it)
  static absl::StatusOr<LaneDeal> Create(const FeedSpec& feed,
                                         std::span<const std::uint32_t> lanes,
                                         std::vector<Source> sources);

  std::uint32_t size() const { return static_cast<std::uint32_t>(lanes_.size()); }
  std::uint32_t LanesOf(std::uint32_t source) const { return counts_[source]; }

  // Chunk number `chunk` of a lane.
  Chunk At(std::uint32_t lane, std::uint64_t chunk) const;

  // Units of a source among the first `units` (unit i is of lane i mod size()).
  std::uint64_t CountBefore(std::uint32_t source, std::uint64_t units) const;
  // Chunks of each lane before one of the source's begins pass number `passes`;
  // UINT64_MAX: too many to count.
  std::uint64_t ChunksWithin(std::uint32_t source, std::uint64_t passes) const;
  // Passes that `chunks` chunks of each lane have begun, of the source's lane with
  // the most.
  std::uint64_t PassesBegun(std::uint32_t source, std::uint64_t chunks) const;

 private:
  struct Lane {
    std::uint32_t source = 0;
    std::uint32_t number = 0;             // among the source's
    std::uint64_t chunks = 0;             // of a pass
    std::vector<std::uint32_t> captures;  // places in the source's selection
  };

  absl::Status Deal(const FeedSpec& feed, std::uint32_t source);
  const View& ViewOf(std::uint32_t source) const {
    return sources_[source].lineage->strata()[0].pool.buckets()[0].view;
  }

  Seed seed_;
  bool keyed_ = true;
  std::vector<std::string> names_;  // of the sources
  std::vector<Source> sources_;
  std::vector<std::uint32_t> counts_;  // lanes of each source
  std::vector<Lane> lanes_;
};

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_LANES_H_
