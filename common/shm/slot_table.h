#ifndef PENSTOCK_COMMON_SHM_SLOT_TABLE_H_
#define PENSTOCK_COMMON_SHM_SLOT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::shm {

// A lease of a slot: where it starts in the arena, and which lease of the arena
// it is. Generations start at 1 and never repeat in one table, so an old
// reference never names a new lease.
struct SlotRef {
  std::uint64_t offset = 0;
  std::uint64_t generation = 0;
  friend bool operator==(const SlotRef&, const SlotRef&) = default;
};

using HolderId = std::uint64_t;  // a session, or the daemon's own work

// Who holds which slot of one arena.
//
// The law (B-11): a slot is free exactly when every holder it was given has
// released it or was dropped because its process is gone. There is no timer and
// no other way. A call that is refused changes nothing.
//
// Threading: one owner. No clock, no memory is touched: offsets only.
// Bounds: slots × holders entries.
class SlotTable {
 public:
  // Divides `arena_bytes` into slots of `slot_bytes` (rounded up to 4 KiB).
  //
  // kInvalidArgument: not even one slot fits
  static absl::StatusOr<SlotTable> Create(std::uint64_t arena_bytes,
                                          std::uint64_t slot_bytes);

  // Leases the free slot that was free the longest; `first` holds it.
  //
  // kResourceExhausted: every slot is held; the message counts them
  absl::StatusOr<SlotRef> Acquire(HolderId first);
  // kNotFound: no such lease (offset is no slot, or another generation)
  // kAlreadyExists: it holds the slot already
  absl::Status AddHolder(SlotRef slot, HolderId holder);
  // kNotFound: no such lease; kFailedPrecondition: this holder does not hold it
  // (never did, or released before)
  absl::Status Release(SlotRef slot, HolderId holder);
  // The process of `holder` is gone: takes it out of every slot. Returns the
  // number of slots that became free.
  std::size_t DropHolder(HolderId holder);

  bool Holds(SlotRef slot, HolderId holder) const;
  std::size_t HeldBy(HolderId holder) const;
  std::size_t slot_count() const { return slots_.size(); }
  std::size_t free_count() const { return free_.size(); }
  std::uint64_t slot_bytes() const { return slot_bytes_; }

 private:
  struct Slot {
    std::uint64_t generation = 0;  // 0: free
    std::set<HolderId> holders;
  };
  SlotTable(std::uint64_t slot_bytes, std::size_t count);
  // The index of a live lease, or kNotFound.
  absl::StatusOr<std::size_t> Find(SlotRef slot) const;
  void Free(std::size_t index);

  std::uint64_t slot_bytes_ = 0;
  std::uint64_t next_generation_ = 1;
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;  // oldest first
};

}  // namespace penstock::shm

#endif  // PENSTOCK_COMMON_SHM_SLOT_TABLE_H_
