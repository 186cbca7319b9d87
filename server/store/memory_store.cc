#include <algorithm>
#include <map>
#include <mutex>

#include "common/status/status.h"
#include "server/store/job_store.h"

namespace penstock::store {
namespace {

class MemoryStore final : public JobStore {
 public:
  absl::StatusOr<std::optional<StoredJob>> Load(
      const std::string& job) override {
    std::lock_guard lock(mutex_);
    auto it = jobs_.find(job);
    if (it == jobs_.end()) return std::optional<StoredJob>();
    return std::optional<StoredJob>(it->second);
  }

  absl::StatusOr<StoredJob> Change(const std::string& job,
                                   std::uint64_t revision,
                                   const job::Event& event) override {
    std::lock_guard lock(mutex_);
    const auto it = jobs_.find(job);
    const StoredJob now = it == jobs_.end() ? StoredJob{} : it->second;
    if (now.revision != revision) {
      return absl::AbortedError("job " + job + ": changed meanwhile");
    }
    StoredJob next;
    PENSTOCK_ASSIGN_OR_RETURN(next.record, job::Apply(now.record, event));
    next.revision = revision + 1;
    jobs_[job] = next;
    return next;
  }

  absl::Status PutAcks(const std::string& job, std::uint64_t generation,
                       const std::vector<AckPosition>& acks) override {
    std::lock_guard lock(mutex_);
    auto& map = acks_[{job, generation}];
    for (const auto& a : acks) {
      map[a.data_rank] = std::max(map[a.data_rank], a.next_step);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<AckPosition>> LoadAcks(
      const std::string& job, std::uint64_t generation) override {
    std::lock_guard lock(mutex_);
    std::vector<AckPosition> out;
    for (const auto& [rank, step] : acks_[{job, generation}]) {
      out.push_back({rank, step});
    }
    return out;
  }

  absl::StatusOr<std::vector<std::string>> List() override {
    std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, stored] : jobs_) names.push_back(name);
    return names;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, StoredJob> jobs_;
  std::map<std::pair<std::string, std::uint64_t>,
           std::map<std::uint32_t, std::uint64_t>>
      acks_;
};

}  // namespace

std::unique_ptr<JobStore> MakeMemoryStore() {
  return std::make_unique<MemoryStore>();
}

}  // namespace penstock::store
