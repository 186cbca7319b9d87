#ifndef PENSTOCK_COMMON_JOB_ATTACH_H_
#define PENSTOCK_COMMON_JOB_ATTACH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job_record.h"

namespace penstock::job {

// The small value from which all future batches follow; what state_dict() gives
// to the trainer. The text is canonical: one value, one text (B-3), no rank in
// it (B-7).
struct Cursor {
  std::string job;
  std::string feed;      // first 32 hex digits of the order digest
  std::string datasets;  // first 32 hex digits of DatasetsDigest
  std::uint64_t next_step = 0;
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

std::string EncodeCursor(const Cursor& cursor);

// kInvalidArgument: not the text of a cursor
absl::StatusOr<Cursor> ParseCursor(const std::string& text);

// SHA-256 (hex) over the dataset ids and the selection digest of a feed.
std::string DatasetsDigest(const std::vector<std::string>& dataset_ids,
                           const std::string& selection_digest);

// What a rank asks for, with what its feed resolved to.
struct AttachIntent {
  std::string job, incarnation, resume;
  std::uint32_t data_world = 1;
  std::uint32_t ranks_per_node = 0;
  std::string speeds;  // as plan::FormatSpeeds writes them; empty: all alike
  std::string cp;      // as plan::FormatCpCut does; empty: off
  std::string order_digest, content_digest, selection_digest;  // hex
  std::vector<std::string> dataset_ids;
  bool takeover = false;
  std::uint32_t live_ranks = 0;  // connected ranks of the open generation
};

struct AttachDecision {
  std::optional<Event> event;  // to be journaled first; empty: joins
  std::uint64_t start_step = 0;  // of the generation
  std::vector<std::string> notes;  // what the rank should log
};

// Decides an attach against the stored record (null: no such job). `resume`:
// "new" refuses an existing job; "step:K"; the text of a cursor. It is looked
// at only when a generation opens: the same incarnation joins what is open.
//
// kAlreadyExists:      resume "new" on an existing job
// kNotFound:           never: an empty store takes the trainer's position
// kFailedPrecondition: a field that must agree does not, also of a cursor (named,
//                      both values); ranks are connected and there is no
//                      takeover; a fenced incarnation
// kInvalidArgument:    resume missing or unknown; not the text of a cursor
absl::StatusOr<AttachDecision> DecideAttach(const JobRecord* record,
                                            const AttachIntent& intent);

}  // namespace penstock::job

#endif  // PENSTOCK_COMMON_JOB_ATTACH_H_
