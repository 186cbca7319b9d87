#ifndef PENSTOCK_COMMON_JOB_JOB_RECORD_H_
#define PENSTOCK_COMMON_JOB_JOB_RECORD_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

// What the server keeps of a job (DESIGN §5), and how it changes: only by
// Apply(record, event). Steps count from 0; next_step is the first step that is
// not yet trained.
namespace penstock::job {

// What is made of the samples changed at a declared step.
struct FeedRevision {
  std::uint64_t from_step = 0;
  std::string order_digest, content_digest;  // hex
  friend bool operator==(const FeedRevision&, const FeedRevision&) = default;
};

// One incarnation of the trainer: fixed mesh, feed and start step.
struct GenerationRecord {
  std::uint64_t number = 0;  // from 1
  std::string incarnation;
  std::uint32_t data_world = 0;
  std::uint64_t start_step = 0;
  std::uint32_t ranks_per_node = 0;  // the node map; 0: one node
  std::string speeds = {};           // of the data ranks; empty: all alike
  std::string cp = {};               // context-parallel cut; empty: off
  friend bool operator==(const GenerationRecord&,
                         const GenerationRecord&) = default;
};

struct JobRecord {
  std::string job;
  std::vector<FeedRevision> revisions;  // ascending from_step, at least one
  std::vector<std::string> dataset_ids;  // hex, in the order of the sources
  std::string selection_digest;          // hex
  GenerationRecord generation;           // the open one
  std::vector<GenerationRecord> fenced;  // the newest kFencedMax before it
  std::map<std::string, std::uint64_t> checkpoints;  // name -> next_step
  std::uint64_t ledger_count = 0;  // replacements; entries have their own keys
  std::string ledger_digest;       // hex, empty when there are none
  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};

inline constexpr std::size_t kFencedMax = 64;
inline constexpr std::size_t kNameBytesMax = 128;
inline constexpr std::size_t kCheckpointsMax = 100'000;

// The first generation of a job, which creates its record.
struct CreateJob {
  std::string job;
  FeedRevision revision;
  std::vector<std::string> dataset_ids;
  std::string selection_digest;
  GenerationRecord generation;
};

// The next generation. From its first step on `revision` rules: a revision that
// starts there or later is dropped, and this one appended when the content that
// is left differs.
struct OpenGeneration {
  GenerationRecord generation;
  FeedRevision revision;
};

// A durable name for a position. Write-once; repeats are the same.
struct NameCheckpoint {
  std::uint64_t generation = 0;
  std::string name;
  std::uint64_t next_step = 0;
};

using Event = std::variant<CreateJob, OpenGeneration, NameCheckpoint>;

// The record after `event`; `record` is empty (no job name) before CreateJob.
// Pure: recovery replays the same events to the same record.
//
// kAlreadyExists:      CreateJob on a job; a checkpoint name at another step
// kFailedPrecondition: a generation that does not follow the open one; another
//                      order digest; a checkpoint of no job, of an unknown
//                      generation, or of a fenced one past the step where the
//                      next one began
// kInvalidArgument:    a name that is empty, too long or has other characters
//                      than letters, digits, '.', '_', '-'
// kResourceExhausted:  too many checkpoints
absl::StatusOr<JobRecord> Apply(const JobRecord& record, const Event& event);

// Bytes of a record and back; equal records give equal bytes.
//
// kDataLoss: not a record, checksum, unknown version
std::vector<std::uint8_t> EncodeRecord(const JobRecord& record);
absl::StatusOr<JobRecord> DecodeRecord(std::span<const std::uint8_t> bytes);

// OK when `name` may name a job, an incarnation or a checkpoint.
absl::Status CheckName(const std::string& what, const std::string& name);

}  // namespace penstock::job

#endif  // PENSTOCK_COMMON_JOB_JOB_RECORD_H_
