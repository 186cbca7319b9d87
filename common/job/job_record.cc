#include "common/job/job_record.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_format.h"
#include "common/format/bytes.h"
#include "common/hash/hash.h"
#include "common/status/status.h"

namespace penstock::job {
namespace {

constexpr std::uint32_t kRecordMagic = 0x424F4A50;  // "PJOB"
// 2: ranks_per_node of generations. 3: their speeds and
// context-parallel cut.
constexpr std::uint32_t kRecordVersion = 3;

absl::StatusOr<JobRecord> ApplyTo(const JobRecord& record,
                                  const CreateJob& e) {
  if (!record.job.empty()) {
    return MakeError(absl::StatusCode::kAlreadyExists,
                     {.where = "job " + e.job,
                      .what = "exists already",
                      .found = "a job of this name",
                      .expected = "a name that was never used",
                      .action = "give another job name, or resume this one"});
  }
  PENSTOCK_RETURN_IF_ERROR(CheckName("job", e.job));
  PENSTOCK_RETURN_IF_ERROR(CheckName("incarnation", e.generation.incarnation));
  JobRecord out;
  out.job = e.job;
  out.revisions = {e.revision};
  out.dataset_ids = e.dataset_ids;
  out.selection_digest = e.selection_digest;
  out.generation = e.generation;
  out.generation.number = 1;
  return out;
}

absl::StatusOr<JobRecord> ApplyTo(const JobRecord& record,
                                  const OpenGeneration& e) {
  PENSTOCK_RETURN_IF_ERROR(CheckName("incarnation", e.generation.incarnation));
  if (record.job.empty() ||
      e.generation.number != record.generation.number + 1) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        {.where = "job " + record.job,
         .what = "another generation was opened meanwhile",
         .found = absl::StrFormat("generation %d", record.generation.number),
         .expected = absl::StrFormat("%d", e.generation.number - 1),
         .action = "attach again"});
  }
  const FeedRevision& last = record.revisions.back();
  if (e.revision.order_digest != last.order_digest) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     {.where = "job " + record.job,
                      .what = "another feed: the order digest differs",
                      .found = e.revision.order_digest,
                      .expected = last.order_digest,
                      .action = "attach with the feed of this job, or give "
                                "another job name"});
  }
  JobRecord out = record;
  out.fenced.push_back(record.generation);
  if (out.fenced.size() > kFencedMax) out.fenced.erase(out.fenced.begin());
  out.generation = e.generation;
  // Steps from here on are trained again, with this content: what was recorded
  // for them before is over, also when the newest content comes back earlier.
  while (!out.revisions.empty() &&
         out.revisions.back().from_step >= e.revision.from_step) {
    out.revisions.pop_back();
  }
  if (out.revisions.empty() ||
      out.revisions.back().content_digest != e.revision.content_digest) {
    out.revisions.push_back(e.revision);
  }
  return out;
}

absl::StatusOr<JobRecord> ApplyTo(const JobRecord& record,
                                  const NameCheckpoint& e) {
  PENSTOCK_RETURN_IF_ERROR(CheckName("checkpoint", e.name));
  if (record.job.empty()) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     {.where = "checkpoint " + e.name,
                      .what = "no such job",
                      .found = "no record of it",
                      .expected = "a job that was attached to",
                      .action = "attach first"});
  }
  const auto known = record.checkpoints.find(e.name);
  if (known != record.checkpoints.end()) {
    if (known->second == e.next_step) return record;
    return MakeError(
        absl::StatusCode::kAlreadyExists,
        {.where = absl::StrFormat("job %s, checkpoint %s", record.job, e.name),
         .what = "names are written once",
         .found = absl::StrFormat("next_step %d", e.next_step),
         .expected = absl::StrFormat("%d", known->second),
         .action = "give another name"});
  }
  if (e.generation != record.generation.number) {
    // A fenced generation may still name what it trained before the generation
    // that followed it took over.
    const auto was = std::find_if(
        record.fenced.begin(), record.fenced.end(),
        [&](const GenerationRecord& g) { return g.number == e.generation; });
    const bool known_one = was != record.fenced.end();
    const std::uint64_t fence =
        !known_one ? 0
        : std::next(was) == record.fenced.end()
            ? record.generation.start_step
            : std::next(was)->start_step;
    if (!known_one || e.next_step > fence) {
      return MakeError(
          absl::StatusCode::kFailedPrecondition,
          {.where =
               absl::StrFormat("job %s, checkpoint %s", record.job, e.name),
           .what = "this generation is fenced",
           .found = absl::StrFormat("generation %d, next_step %d", e.generation,
                                    e.next_step),
           .expected =
               known_one
                   ? absl::StrFormat("generation %d, or a step up to %d",
                                     record.generation.number, fence)
                   : absl::StrFormat("generation %d", record.generation.number),
           .action = "the run of the newer generation names checkpoints now"});
    }
  }
  if (record.checkpoints.size() >= kCheckpointsMax) {
    return absl::ResourceExhaustedError("job " + record.job +
                                        ": too many named checkpoints");
  }
  JobRecord out = record;
  out.checkpoints[e.name] = e.next_step;
  return out;
}

void PutGeneration(format::ByteWriter& w, const GenerationRecord& g) {
  w.Put(g.number);
  w.PutString(g.incarnation);
  w.Put(g.data_world);
  w.Put(g.start_step);
  w.Put(g.ranks_per_node);
  w.PutString(g.speeds);
  w.PutString(g.cp);
}

GenerationRecord GetGeneration(format::ByteReader& r, std::uint32_t version) {
  GenerationRecord g;
  g.number = r.Get<std::uint64_t>();
  g.incarnation = r.GetString();
  g.data_world = r.Get<std::uint32_t>();
  g.start_step = r.Get<std::uint64_t>();
  if (version >= 2) g.ranks_per_node = r.Get<std::uint32_t>();
  if (version >= 3) {
    g.speeds = r.GetString();
    g.cp = r.GetString();
  }
  return g;
}

}  // namespace

absl::Status CheckName(const std::string& what, const std::string& name) {
  const bool good =
      !name.empty() && name.size() <= kNameBytesMax &&
      std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
      });
  if (good) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = what,
                    .what = "not a name",
                    .found = "\"" + name.substr(0, kNameBytesMax) + "\"",
                    .expected = "1 to 128 letters, digits, '.', '_' or '-'",
                    .action = "correct the name"});
}

absl::StatusOr<JobRecord> Apply(const JobRecord& record, const Event& event) {
  return std::visit([&](const auto& e) { return ApplyTo(record, e); }, event);
}

std::vector<std::uint8_t> EncodeRecord(const JobRecord& record) {
  format::ByteWriter w;
  w.Put(kRecordMagic);
  w.Put(kRecordVersion);
  w.PutString(record.job);
  w.Put(static_cast<std::uint32_t>(record.revisions.size()));
  for (const auto& r : record.revisions) {
    w.Put(r.from_step);
    w.PutString(r.order_digest);
    w.PutString(r.content_digest);
  }
  w.Put(static_cast<std::uint32_t>(record.dataset_ids.size()));
  for (const auto& id : record.dataset_ids) w.PutString(id);
  w.PutString(record.selection_digest);
  PutGeneration(w, record.generation);
  w.Put(static_cast<std::uint32_t>(record.fenced.size()));
  for (const auto& g : record.fenced) PutGeneration(w, g);
  w.Put(static_cast<std::uint32_t>(record.checkpoints.size()));
  for (const auto& [name, step] : record.checkpoints) {
    w.PutString(name);
    w.Put(step);
  }
  w.Put(record.ledger_count);
  w.PutString(record.ledger_digest);
  std::vector<std::uint8_t> out = w.Take();
  const std::uint32_t crc = hash::Crc32c(out);
  const auto* p = reinterpret_cast<const std::uint8_t*>(&crc);
  out.insert(out.end(), p, p + 4);
  return out;
}

absl::StatusOr<JobRecord> DecodeRecord(std::span<const std::uint8_t> bytes) {
  auto bad = [](const char* what) {
    return MakeError(absl::StatusCode::kDataLoss,
                     {.where = "job record",
                      .what = what,
                      .found = "a record that is not as it was written",
                      .expected = "a record of this or an earlier version",
                      .action = "restore the state directory, or attach with "
                                "the trainer's cursor under another job name"});
  };
  if (bytes.size() < 12) return bad("cut off");
  format::ByteReader crc(bytes.last(4));
  if (crc.Get<std::uint32_t>() != hash::Crc32c(bytes.first(bytes.size() - 4))) {
    return bad("checksum differs");
  }
  format::ByteReader r(bytes.first(bytes.size() - 4));
  if (r.Get<std::uint32_t>() != kRecordMagic) return bad("not a job record");
  const auto version = r.Get<std::uint32_t>();
  if (version == 0 || version > kRecordVersion) return bad("unknown version");
  JobRecord out;
  out.job = r.GetString();
  out.revisions.resize(r.GetCount(16));
  for (auto& v : out.revisions) {
    v.from_step = r.Get<std::uint64_t>();
    v.order_digest = r.GetString();
    v.content_digest = r.GetString();
  }
  out.dataset_ids.resize(r.GetCount(4));
  for (auto& id : out.dataset_ids) id = r.GetString();
  out.selection_digest = r.GetString();
  out.generation = GetGeneration(r, version);
  out.fenced.resize(r.GetCount(24));
  for (auto& g : out.fenced) g = GetGeneration(r, version);
  const std::uint32_t checkpoints = r.GetCount(12);
  for (std::uint32_t i = 0; i < checkpoints; ++i) {
    std::string name = r.GetString();
    out.checkpoints[std::move(name)] = r.Get<std::uint64_t>();
  }
  out.ledger_count = r.Get<std::uint64_t>();
  out.ledger_digest = r.GetString();
  if (!r.ok() || r.left() != 0 || out.revisions.empty()) {
    return bad("cut off or overlong");
  }
  return out;
}

}  // namespace penstock::job
