#ifndef PENSTOCK_SERVER_STORE_JOB_STORE_H_
#define PENSTOCK_SERVER_STORE_JOB_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job_record.h"

namespace penstock::store {

// A record with the revision that a change must name.
struct StoredJob {
  job::JobRecord record;
  std::uint64_t revision = 0;
};

// The first step not yet acknowledged by a data rank's ack leader; soft state.
struct AckPosition {
  std::uint32_t data_rank = 0;
  std::uint64_t next_step = 0;
};

// Keeps job records. One contract for every implementation
// (tests/unit/store/job_store_contract.h).
//
// Threading: any thread. Errors after which nothing more is promised end the
//   store: every later call fails with the first error (a failed sync is never
//   retried).
class JobStore {
 public:
  virtual ~JobStore() = default;

  // Empty when there is no such job. kDataLoss: the record is damaged
  virtual absl::StatusOr<std::optional<StoredJob>> Load(
      const std::string& job) = 0;

  // Journals `event`, applies it to the record at `revision` (0: the job must
  // not exist) and returns the new record; durable when it returns.
  //
  // kAborted:  the revision is not the newest: load again and decide again
  // others:    as job::Apply; nothing is written
  virtual absl::StatusOr<StoredJob> Change(const std::string& job,
                                           std::uint64_t revision,
                                           const job::Event& event) = 0;

  // Soft state of one generation; a position never goes back. Not journaled.
  virtual absl::Status PutAcks(const std::string& job, std::uint64_t generation,
                               const std::vector<AckPosition>& acks) = 0;
  virtual absl::StatusOr<std::vector<AckPosition>> LoadAcks(
      const std::string& job, std::uint64_t generation) = 0;

  virtual absl::StatusOr<std::vector<std::string>> List() = 0;
};

// The embedded store: one file, one connection, WAL with FULL sync. For jobs on
// one node.
//
// kFailedPrecondition: another process has it open
// kPermissionDenied:   folder or file cannot be written
// kDataLoss:           the file is no job store
absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteStore(
    const std::string& path);

// In memory; for `feed --local` and for tests.
std::unique_ptr<JobStore> MakeMemoryStore();

}  // namespace penstock::store

#endif  // PENSTOCK_SERVER_STORE_JOB_STORE_H_
