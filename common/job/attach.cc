#include "common/job/attach.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/status/status.h"

namespace penstock::job {
namespace {

constexpr std::size_t kShortDigits = 32;

absl::Status Differs(const std::string& job, const std::string& field,
                     const std::string& found, const std::string& expected,
                     const std::string& action) {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   {.where = "job " + job,
                    .what = field + " differs",
                    .found = found,
                    .expected = expected,
                    .action = action});
}

// Consumes `text` from the front of `in`.
bool Eat(std::string_view& in, std::string_view text) {
  if (!in.starts_with(text)) return false;
  in.remove_prefix(text.size());
  return true;
}

bool EatQuoted(std::string_view& in, std::string& out) {
  const auto end = in.find('"');
  if (end == std::string_view::npos) return false;
  out = std::string(in.substr(0, end));
  in.remove_prefix(end + 1);
  return out.find('\\') == std::string::npos;
}

bool EatNumber(std::string_view& in, std::uint64_t& out) {
  const auto [p, error] = std::from_chars(in.data(), in.data() + in.size(), out);
  if (error != std::errc()) return false;
  in.remove_prefix(static_cast<std::size_t>(p - in.data()));
  return true;
}

bool IsShortDigest(const std::string& text) {
  return text.size() == kShortDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

absl::Status CheckCursor(const Cursor& c, const AttachIntent& intent) {
  const std::string action =
      "give the cursor of this job, or attach with the feed and datasets that "
      "it was made with";
  if (c.job != intent.job) {
    return Differs(intent.job, "the cursor's job", c.job, intent.job, action);
  }
  if (c.feed != intent.order_digest.substr(0, kShortDigits)) {
    return Differs(intent.job, "the cursor's feed (order digest)", c.feed,
                   intent.order_digest.substr(0, kShortDigits), action);
  }
  const std::string datasets =
      DatasetsDigest(intent.dataset_ids, intent.selection_digest)
          .substr(0, kShortDigits);
  if (c.datasets != datasets) {
    return Differs(intent.job, "the cursor's datasets", c.datasets, datasets,
                   action);
  }
  return absl::OkStatus();
}

// The step that `resume` names, and whether it comes from a cursor.
absl::StatusOr<std::uint64_t> ResumeStep(const AttachIntent& intent) {
  const std::string& r = intent.resume;
  if (r == "new") return 0;
  std::string_view rest = r;
  if (Eat(rest, "step:")) {
    std::uint64_t step = 0;
    if (EatNumber(rest, step) && rest.empty()) return step;
  }
  if (r.starts_with('{')) {
    PENSTOCK_ASSIGN_OR_RETURN(const Cursor c, ParseCursor(r));
    PENSTOCK_RETURN_IF_ERROR(CheckCursor(c, intent));
    return c.next_step;
  }
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.where = "job " + intent.job + ", resume",
       .what = r.empty() ? "must be given" : "unknown",
       .found = r.empty() ? "nothing" : "\"" + r.substr(0, 80) + "\"",
       .expected = "\"new\", \"step:K\", or the value of state_dict()",
       .action = "give the state_dict that the trainer saved; \"new\" only for "
                 "a job that never ran"});
}

// What must be equal for every rank of a job, whoever opens the generation.
absl::Status CheckSameData(const JobRecord& record,
                           const AttachIntent& intent) {
  const std::string action =
      "attach with the feed of this job, or give another job name";
  if (record.dataset_ids != intent.dataset_ids) {
    for (std::size_t i = 0;
         i < std::max(record.dataset_ids.size(), intent.dataset_ids.size());
         ++i) {
      const auto at = [&](const std::vector<std::string>& ids) {
        return i < ids.size() ? ids[i] : std::string("none");
      };
      if (at(record.dataset_ids) != at(intent.dataset_ids)) {
        return Differs(record.job, absl::StrFormat("dataset %d", i),
                       at(intent.dataset_ids), at(record.dataset_ids), action);
      }
    }
  }
  if (record.selection_digest != intent.selection_digest) {
    return Differs(record.job, "the selection digest", intent.selection_digest,
                   record.selection_digest, action);
  }
  if (record.revisions.back().order_digest != intent.order_digest) {
    return Differs(record.job, "the feed (order digest)", intent.order_digest,
                   record.revisions.back().order_digest, action);
  }
  return absl::OkStatus();
}

absl::StatusOr<AttachDecision> Join(const JobRecord& record,
                                    const AttachIntent& intent) {
  const std::string action = "start every rank of a run with the same values";
  if (record.generation.data_world != intent.data_world) {
    return Differs(record.job, "the number of data ranks",
                   absl::StrFormat("%d", intent.data_world),
                   absl::StrFormat("%d", record.generation.data_world), action);
  }
  if (record.generation.ranks_per_node != intent.ranks_per_node) {
    return Differs(record.job, "the number of data ranks on a node",
                   absl::StrFormat("%d", intent.ranks_per_node),
                   absl::StrFormat("%d", record.generation.ranks_per_node),
                   action);
  }
  const auto text = [](const std::string& value, const char* none) {
    return value.empty() ? none : value;
  };
  if (record.generation.speeds != intent.speeds) {
    return Differs(record.job, "the speeds of the data ranks",
                   text(intent.speeds, "all alike"),
                   text(record.generation.speeds, "all alike"), action);
  }
  if (record.generation.cp != intent.cp) {
    return Differs(record.job, "the context-parallel cut",
                   text(intent.cp, "off"), text(record.generation.cp, "off"),
                   action);
  }
  if (record.revisions.back().content_digest != intent.content_digest) {
    return Differs(record.job, "the feed (content digest)",
                   intent.content_digest,
                   record.revisions.back().content_digest, action);
  }
  AttachDecision d;
  d.start_step = record.generation.start_step;
  return d;
}

}  // namespace

std::string EncodeCursor(const Cursor& c) {
  return absl::StrFormat(
      "{\"datasets\":\"%s\",\"feed\":\"%s\",\"job\":\"%s\",\"next_step\":%d,"
      "\"version\":1}",
      c.datasets, c.feed, c.job, c.next_step);
}

absl::StatusOr<Cursor> ParseCursor(const std::string& text) {
  Cursor c;
  std::string_view in = text;
  const bool good =
      Eat(in, "{\"datasets\":\"") && EatQuoted(in, c.datasets) &&
      Eat(in, ",\"feed\":\"") && EatQuoted(in, c.feed) &&
      Eat(in, ",\"job\":\"") && EatQuoted(in, c.job) &&
      Eat(in, ",\"next_step\":") && EatNumber(in, c.next_step) &&
      Eat(in, ",\"version\":1}") && in.empty() && IsShortDigest(c.datasets) &&
      IsShortDigest(c.feed) && CheckName("job", c.job).ok() &&
      EncodeCursor(c) == text;
  if (!good) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = "cursor",
                      .what = "not the value of a state_dict()",
                      .found = text.substr(0, 100),
                      .expected = "{\"datasets\":…,\"feed\":…,\"job\":…,"
                                  "\"next_step\":…,\"version\":1}",
                      .action = "give back the saved value unchanged"});
  }
  return c;
}

std::string DatasetsDigest(const std::vector<std::string>& dataset_ids,
                           const std::string& selection_digest) {
  hash::Sha256 sha;
  sha.Update("penstock datasets 1\n");
  for (const auto& id : dataset_ids) sha.Update(id + "\n");
  sha.Update(selection_digest);
  return hash::Hex(sha.Finish());
}

absl::StatusOr<AttachDecision> DecideAttach(const JobRecord* record,
                                            const AttachIntent& intent) {
  PENSTOCK_RETURN_IF_ERROR(CheckName("job", intent.job));
  PENSTOCK_RETURN_IF_ERROR(CheckName("incarnation", intent.incarnation));
  AttachDecision d;
  const FeedRevision revision{0, intent.order_digest, intent.content_digest};
  if (record == nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(d.start_step, ResumeStep(intent));
    if (intent.resume != "new") {
      d.notes.push_back(absl::StrFormat(
          "job %s is not in this store; it goes on at step %d as the trainer "
          "says",
          intent.job, d.start_step));
    }
    CreateJob create{intent.job,
                     revision,
                     intent.dataset_ids,
                     intent.selection_digest,
                     {1, intent.incarnation, intent.data_world, d.start_step,
                      intent.ranks_per_node, intent.speeds, intent.cp}};
    create.revision.from_step = d.start_step;
    d.event = create;
    return d;
  }
  PENSTOCK_RETURN_IF_ERROR(CheckSameData(*record, intent));
  if (record->generation.incarnation == intent.incarnation) {
    return Join(*record, intent);
  }
  for (const auto& g : record->fenced) {
    if (g.incarnation == intent.incarnation) {
      return MakeError(
          absl::StatusCode::kFailedPrecondition,
          {.where = "job " + record->job,
           .what = "this incarnation is fenced: a newer run took over",
           .found = absl::StrFormat("\"%s\", generation %d", g.incarnation,
                                    g.number),
           .expected = absl::StrFormat("\"%s\", generation %d",
                                       record->generation.incarnation,
                                       record->generation.number),
           .action = "end this process"});
    }
  }
  if (intent.resume == "new") {
    return MakeError(absl::StatusCode::kAlreadyExists,
                     {.where = "job " + record->job + ", resume \"new\"",
                      .what = "the job exists already",
                      .found = absl::StrFormat("generation %d, started at %d",
                                               record->generation.number,
                                               record->generation.start_step),
                      .expected = "a job name that was never used",
                      .action = "give the saved state_dict or \"step:K\", or "
                                "another job name"});
  }
  PENSTOCK_ASSIGN_OR_RETURN(d.start_step, ResumeStep(intent));
  if (intent.live_ranks > 0 && !intent.takeover) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        {.where = "job " + record->job,
         .what = "ranks of the last run are still connected",
         .found = absl::StrFormat("%d ranks of \"%s\"", intent.live_ranks,
                                  record->generation.incarnation),
         .expected = "none, or takeover",
         .action = "end them, or attach with takeover"});
  }
  OpenGeneration open;
  open.generation = {record->generation.number + 1,
                     intent.incarnation,
                     intent.data_world,
                     d.start_step,
                     intent.ranks_per_node,
                     intent.speeds,
                     intent.cp};
  open.revision = revision;
  open.revision.from_step = d.start_step;
  if (record->revisions.back().content_digest != intent.content_digest) {
    d.notes.push_back(absl::StrFormat(
        "the feed's content differs: revision recorded from step %d",
        d.start_step));
  }
  d.event = open;
  return d;
}

}  // namespace penstock::job
