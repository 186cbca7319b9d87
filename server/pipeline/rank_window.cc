#include "server/pipeline/rank_window.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace penstock::pipeline {

void RankWindow::Join(shm::HolderId session, std::uint32_t rank,
                      std::uint64_t position) {
  Rank& r = ranks_[rank];
  r.sessions.insert(session);
  r.known = true;
  r.position = position;
}

void RankWindow::Leave(shm::HolderId session) {
  for (Rank& r : ranks_) r.sessions.erase(session);
  std::vector<shm::SlotRef> held;
  for (const auto& [offset, lease] : leases_) {
    const shm::SlotRef slot{offset, lease.first};
    if (slots_.Holds(slot, session)) held.push_back(slot);
  }
  for (const shm::SlotRef& slot : held) Release(session, slot);
}

void RankWindow::Want(std::uint32_t rank, std::uint64_t step) {
  ranks_[rank].position = step;
}

void RankWindow::Ack(std::uint32_t rank, std::uint64_t next_step) {
  Rank& r = ranks_[rank];
  r.acked_next = std::max(r.acked_next, next_step);
  while (!r.published.empty() && r.published.begin()->first < next_step) {
    const shm::SlotRef slot = r.published.begin()->second;
    r.published.erase(r.published.begin());
    Release(kDaemon, slot);
  }
}

void RankWindow::Settle(std::size_t free_before, shm::SlotRef slot) {
  if (slots_.free_count() == free_before) return;
  auto it = leases_.find(slot.offset);
  if (it == leases_.end()) return;
  --ranks_[it->second.second].leases;
  leases_.erase(it);
}

void RankWindow::Release(shm::HolderId session, shm::SlotRef slot) {
  const std::size_t before = slots_.free_count();
  if (slots_.Release(slot, session).ok()) Settle(before, slot);
}

std::optional<shm::SlotRef> RankWindow::Take(shm::HolderId session,
                                             std::uint32_t rank,
                                             std::uint64_t step) {
  auto it = ranks_[rank].published.find(step);
  if (it == ranks_[rank].published.end()) return std::nullopt;
  if (!slots_.Holds(it->second, session)) {
    if (!slots_.AddHolder(it->second, session).ok()) return std::nullopt;
  }
  return it->second;
}

std::vector<std::uint32_t> RankWindow::RanksFor(std::uint64_t step) const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
    const Rank& r = ranks_[i];
    if (r.known && r.position <= step && !Coming(i, step)) out.push_back(i);
  }
  return out;
}

std::string RankWindow::Blocked(const std::vector<std::uint32_t>& ranks) const {
  for (std::uint32_t i : ranks) {
    const Rank& r = ranks_[i];
    if (r.leases < window_) continue;
    return absl::StrFormat(
        "data rank %d%s: it holds %d of its %d slots (wants step %d, "
        "acknowledged up to %d)",
        i, r.sessions.empty() ? ", which is not connected" : "", r.leases,
        window_, r.position, r.acked_next);
  }
  return "";
}

absl::StatusOr<shm::SlotRef> RankWindow::Lease(std::uint32_t rank,
                                               std::uint64_t step) {
  auto slot = slots_.Acquire(kDaemon);
  if (!slot.ok()) return slot.status();
  leases_[slot->offset] = {slot->generation, rank};
  ++ranks_[rank].leases;
  ranks_[rank].making.insert(step);
  return *slot;
}

void RankWindow::Publish(std::uint32_t rank, std::uint64_t step,
                         shm::SlotRef slot) {
  Rank& r = ranks_[rank];
  r.making.erase(step);
  if (step < r.acked_next || r.published.contains(step)) {
    Release(kDaemon, slot);  // trained or there meanwhile
    return;
  }
  r.published[step] = slot;
}

bool RankWindow::Coming(std::uint32_t rank, std::uint64_t step) const {
  const Rank& r = ranks_[rank];
  return r.published.contains(step) || r.making.contains(step);
}

std::uint64_t RankWindow::LowestWanted() const {
  std::uint64_t lowest = UINT64_MAX;
  for (const Rank& r : ranks_) lowest = std::min(lowest, r.position);
  return lowest;
}

std::vector<std::uint32_t> RankWindow::Unknown() const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
    if (!ranks_[i].known) out.push_back(i);
  }
  return out;
}

std::uint32_t RankWindow::HeldBy(std::uint32_t rank) const {
  std::uint32_t held = 0;
  for (const shm::HolderId session : ranks_[rank].sessions) {
    held += static_cast<std::uint32_t>(slots_.HeldBy(session));
  }
  return held;
}

}  // namespace penstock::pipeline
