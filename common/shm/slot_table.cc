#include "common/shm/slot_table.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace penstock::shm {
namespace {

constexpr std::uint64_t kPage = 4096;

std::string Name(SlotRef slot, HolderId holder) {
  return absl::StrFormat("slot at %d, lease %d, holder %d", slot.offset,
                         slot.generation, holder);
}

}  // namespace

absl::StatusOr<SlotTable> SlotTable::Create(std::uint64_t arena_bytes,
                                            std::uint64_t slot_bytes) {
  const std::uint64_t rounded =
      slot_bytes > UINT64_MAX - kPage
          ? UINT64_MAX
          : (slot_bytes + kPage - 1) / kPage * kPage;
  if (rounded == 0 || rounded > arena_bytes ||
      rounded == UINT64_MAX) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = "arena",
                      .what = "not even one slot fits",
                      .found = absl::StrFormat("%d bytes", arena_bytes),
                      .expected = absl::StrFormat("at least %d", rounded),
                      .action = "give the job a larger arena"});
  }
  return SlotTable(rounded, arena_bytes / rounded);
}

SlotTable::SlotTable(std::uint64_t slot_bytes, std::size_t count)
    : slot_bytes_(slot_bytes), slots_(count) {
  for (std::size_t i = 0; i < count; ++i) free_.push_back(i);
}

absl::StatusOr<SlotRef> SlotTable::Acquire(HolderId first) {
  if (free_.empty()) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "arena: all %d slots are held; wait for a release", slots_.size()));
  }
  const std::size_t index = free_.front();
  free_.erase(free_.begin());
  Slot& slot = slots_[index];
  slot.generation = next_generation_++;
  slot.holders.insert(first);
  return SlotRef{index * slot_bytes_, slot.generation};
}

absl::Status SlotTable::AddHolder(SlotRef slot, HolderId holder) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::size_t index, Find(slot));
  if (!slots_[index].holders.insert(holder).second) {
    return absl::AlreadyExistsError(Name(slot, holder) + ": holds it already");
  }
  return absl::OkStatus();
}

absl::Status SlotTable::Release(SlotRef slot, HolderId holder) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::size_t index, Find(slot));
  if (slots_[index].holders.erase(holder) == 0) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     {.where = Name(slot, holder),
                      .what = "this holder does not hold the slot",
                      .found = "a slot that it gave back or never had",
                      .expected = "a slot in its hands",
                      .action = "release each slot once"});
  }
  if (slots_[index].holders.empty()) Free(index);
  return absl::OkStatus();
}

std::size_t SlotTable::DropHolder(HolderId holder) {
  std::size_t freed = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].holders.erase(holder) != 0 && slots_[i].holders.empty()) {
      Free(i);
      ++freed;
    }
  }
  return freed;
}

bool SlotTable::Holds(SlotRef slot, HolderId holder) const {
  const auto index = Find(slot);
  return index.ok() && slots_[*index].holders.count(holder) != 0;
}

std::size_t SlotTable::HeldBy(HolderId holder) const {
  return std::count_if(slots_.begin(), slots_.end(), [&](const Slot& s) {
    return s.holders.count(holder) != 0;
  });
}

absl::StatusOr<std::size_t> SlotTable::Find(SlotRef slot) const {
  const std::uint64_t index = slot.offset / slot_bytes_;
  // Generation 0 marks a free slot and names no lease.
  if (slot.offset % slot_bytes_ != 0 || index >= slots_.size() ||
      slot.generation == 0 || slots_[index].generation != slot.generation) {
    return MakeError(
        absl::StatusCode::kNotFound,
        {.where = absl::StrFormat("slot at %d, lease %d", slot.offset,
                                  slot.generation),
         .what = "no such lease",
         .found = "a lease that ended, or none",
         .expected = "a lease that is held",
         .action = "use offset and generation as they were handed out"});
  }
  return static_cast<std::size_t>(index);
}

void SlotTable::Free(std::size_t index) {
  slots_[index].generation = 0;
  free_.push_back(index);
}

}  // namespace penstock::shm
