#ifndef PENSTOCK_SERVER_PIPELINE_RANK_WINDOW_H_
#define PENSTOCK_SERVER_PIPELINE_RANK_WINDOW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/shm/slot_table.h"

namespace penstock::pipeline {

// Which steps each data rank wants, has and holds: the pure bookkeeping of
// delivery. Slots are leased here and nowhere else.
//
// Threading: one owner (the pipeline, under its mutex).
class RankWindow {
 public:
  static constexpr shm::HolderId kDaemon = 1;  // sessions are above

  RankWindow(shm::SlotTable slots, std::uint32_t ranks, std::uint32_t window)
      : slots_(std::move(slots)), window_(window), ranks_(ranks) {}

  struct Rank {
    bool known = false;
    std::uint64_t position = 0;    // the step it wants next
    std::uint64_t acked_next = 0;  // steps before it are trained
    std::set<shm::HolderId> sessions;
    std::map<std::uint64_t, shm::SlotRef> published;  // not yet acknowledged
    std::set<std::uint64_t> making;
    std::uint32_t leases = 0;  // slots in the arena
  };

  void Join(shm::HolderId session, std::uint32_t rank, std::uint64_t position);
  void Leave(shm::HolderId session);
  void Want(std::uint32_t rank, std::uint64_t step);
  void Ack(std::uint32_t rank, std::uint64_t next_step);
  void Release(shm::HolderId session, shm::SlotRef slot);
  // The session takes the published batch: its slot, or empty.
  std::optional<shm::SlotRef> Take(shm::HolderId session, std::uint32_t rank,
                                   std::uint64_t step);

  // Ranks that a step must be made for; empty: nobody needs it any more.
  std::vector<std::uint32_t> RanksFor(std::uint64_t step) const;
  // Who keeps the step from being started for these ranks; empty: nobody.
  std::string Blocked(const std::vector<std::uint32_t>& ranks) const;
  // Leases a slot for the step in the making.
  absl::StatusOr<shm::SlotRef> Lease(std::uint32_t rank, std::uint64_t step);
  void Publish(std::uint32_t rank, std::uint64_t step, shm::SlotRef slot);

  // Whether this step is published or being made for the rank.
  bool Coming(std::uint32_t rank, std::uint64_t step) const;
  // The lowest step that some rank wants.
  std::uint64_t LowestWanted() const;
  // Data ranks that nobody attached for yet.
  std::vector<std::uint32_t> Unknown() const;

  const std::vector<Rank>& ranks() const { return ranks_; }
  std::uint32_t HeldBy(std::uint32_t rank) const;
  const shm::SlotTable& slots() const { return slots_; }
  std::uint32_t window() const { return window_; }

 private:
  // After a holder let go: forgets the lease when the slot became free.
  void Settle(std::size_t free_before, shm::SlotRef slot);

  shm::SlotTable slots_;
  std::uint32_t window_;
  std::vector<Rank> ranks_;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint32_t>>
      leases_;  // offset -> generation, rank
};

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_RANK_WINDOW_H_
