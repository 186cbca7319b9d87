#ifndef PENSTOCK_COMMON_PLAN_POOL_H_
#define PENSTOCK_COMMON_PLAN_POOL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/feed_spec.h"
#include "common/plan/view.h"

namespace penstock::plan {

// The buckets that samples of a track go to, by rising frames: those nearest to it
// in frame rate (of the buckets that name one), then in aspect as shown, then in
// area. They have one size and rate; not empty when `buckets` is not.
std::vector<std::uint32_t> BucketsOf(std::span<const BucketSpec> buckets,
                                     const format::TrackRow& track);

// What a Pool holds (ViewRows): the views of its buckets.
struct PoolRows {
  struct Bucket {
    std::uint32_t shape = 0;
    ViewRows view;
  };
  std::vector<Bucket> buckets;
};

// The windows of some captures as units that are drawn one after the other, for
// ever: with buckets a unit is a microbatch of one, else a window.
//
// A bucket's draws go on over its passes: microbatch k is its draws
// [k·m, (k+1)·m), so what a pass leaves over opens the next. Epoch e has
// ⌊(e+1)n/m⌋ − ⌊en/m⌋ microbatches of each bucket of n windows, evenly merged: its
// i-th of c comes by rising (2i+1)/2c, at equal ones the earlier bucket.
//
// Threading: immutable, any thread. Ownership and bounds: of its Views; calls are
//   O(buckets) but those that say more.
class Pool {
 public:
  struct Bucket {
    std::uint32_t shape = 0;    // its row in the feed's buckets; 0 without
    std::uint64_t samples = 1;  // of a unit
    View view;
  };
  // Draws [first_draw, first_draw + samples) of a bucket; draw r is place r mod n
  // of the bucket's pass r div n.
  struct Unit {
    std::uint32_t bucket = 0;
    std::uint64_t first_draw = 0;
  };

  // kInvalidArgument: as View::Create; a window that is longer than every bucket
  //                   it may go to
  static absl::StatusOr<Pool> Create(const ViewSpec& view,
                                     std::span<const BucketSpec> buckets,
                                     const format::CaptureIndexView& index,
                                     std::span<const SelectedCapture> captures,
                                     std::string_view where);

  // The pool that rows() gave. Errors: as View::FromRows
  static absl::StatusOr<Pool> FromRows(const ViewSpec& view,
                                       std::span<const BucketSpec> buckets,
                                       const PoolRows& rows,
                                       const format::CaptureIndexView& index,
                                       const std::shared_ptr<const void>& owner,
                                       std::string_view where);
  PoolRows rows() const;

  const std::vector<Bucket>& buckets() const { return buckets_; }
  std::uint64_t samples() const { return samples_; }  // windows of all buckets

  // O(buckets · log unit)
  Unit At(std::uint64_t unit) const {
    return plain_ ? Unit{0, unit} : Merged(unit);
  }
  // Units of the first `passes` epochs; UINT64_MAX: too many to count.
  std::uint64_t UnitsBefore(std::uint64_t passes) const;
  // Epochs that the first `units` units have begun. O(buckets · log units)
  std::uint64_t PassesBegun(std::uint64_t units) const;

 private:
  Unit Merged(std::uint64_t unit) const;

  std::vector<Bucket> buckets_;  // that have windows, by shape
  std::uint64_t samples_ = 0;
  bool plain_ = true;
};

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_POOL_H_
