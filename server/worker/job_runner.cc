#include "server/worker/job_runner.h"

#include <time.h>

#include <cstring>
#include <map>

#include "absl/strings/str_format.h"
#include "common/format/block.h"
#include "common/hash/hash.h"
#include "common/shm/mapping.h"

namespace penstock::worker {
namespace {

using shm::JobReason;

constexpr std::uint64_t kPopulatePiece = 256u << 10;

JobReason ReasonOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnimplemented: return JobReason::kUnsupported;
    case absl::StatusCode::kResourceExhausted: return JobReason::kNoMemory;
    default: return JobReason::kBadJob;
  }
}

// The first line of a message, which says where and what.
std::string FirstLine(const absl::Status& status) {
  const auto m = status.message();
  const std::string text(m.data(), m.size());
  const auto end = text.find("\n  expected");
  return text.substr(0, end);
}

}  // namespace

std::uint64_t CpuNs() {
  timespec t = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

// One run of one job.
class JobRunner::Attempt {
 public:
  Attempt(JobRunner& runner, const shm::DecodeJob& job, const TargetSink& sink)
      : runner_(runner), job_(job), sink_(sink), cpu_start_(CpuNs()) {}

  shm::WorkerReply Run() {
    Decode();
    reply_.kind = shm::ReplyKind::kJobDone;
    reply_.job = job_.id;
    reply_.cpu_ns = CpuNs() - cpu_start_;
    return reply_;
  }

 private:
  bool failed() const { return reply_.reason != JobReason::kOk; }

  void Fail(JobReason reason, const std::string& text) {
    if (failed()) return;  // the first one counts
    reply_.reason = reason;
    shm::PutText(text, reply_.text);
  }

  void Decode() {
    if (auto s = shm::CheckJob(job_, runner_.arena_.size(),
                               runner_.input_.size());
        !s.ok()) {
      return Fail(JobReason::kBadJob, FirstLine(s));
    }
    for (const auto& t : job_.transforms) {
      if (auto p = runner_.cache_.Plan(t); !p.ok()) {
        return Fail(ReasonOf(p.status()), FirstLine(p.status()));
      }
    }
    auto decoder = runner_.cache_.Decoder(job_.codec);
    if (!decoder.ok()) {
      return Fail(ReasonOf(decoder.status()), FirstLine(decoder.status()));
    }
    for (std::uint32_t i = 0; i < job_.targets.size(); ++i) {
      wanted_[job_.targets[i].frame].push_back(i);
    }
    const auto take = [this](const decode::Picture& p) { Take(p); };
    for (std::size_t b = 0; b < job_.blocks.size() && Going(); ++b) {
      DecodeBlock(**decoder, b, take);
    }
    if (Going()) {
      if (auto s = (*decoder)->Drain(take); !s.ok()) {
        return Fail(JobReason::kNoMemory, FirstLine(s));
      }
    }
    if (!failed() && !wanted_.empty()) {
      Fail(JobReason::kFrameMissing,
           absl::StrFormat("frame %d and %d more did not come out of %d packets",
                           wanted_.begin()->first, wanted_.size() - 1,
                           rows_.size()));
    }
  }

  bool Going() const { return !failed() && !wanted_.empty(); }

  void DecodeBlock(decode::VideoDecoder& decoder, std::size_t index,
                   const decode::PictureSink& take) {
    const auto& range = job_.blocks[index];
    const auto bytes = runner_.input_.subspan(range.offset, range.bytes);
    shm::Populate(bytes.data(), bytes.size(), shm::Access::kRead);
    const auto block = format::ParseBlock(bytes);
    if (!block.ok()) {
      return Fail(JobReason::kBlockDamaged,
                  absl::StrFormat("block %d of the job: %s", index,
                                  FirstLine(block.status())));
    }
    if (block->header.kind != format::TrackKind::kVideo) {
      return Fail(JobReason::kBadJob,
                  absl::StrFormat("block %d of the job is no video", index));
    }
    for (const auto& row : block->Packets()) {
      if (!Going()) return;
      rows_.push_back(row);
      const auto s =
          decoder.Decode(static_cast<std::uint32_t>(rows_.size() - 1),
                         block->payload.subspan(row.offset, row.bytes), take);
      if (!s.ok()) return Fail(JobReason::kNoMemory, FirstLine(s));
      if (job_.cpu_limit_ns != 0 && CpuNs() - cpu_start_ > job_.cpu_limit_ns) {
        return Fail(JobReason::kCpuLimit,
                    absl::StrFormat("CPU limit of %d ms passed at packet %d",
                                    job_.cpu_limit_ns / 1'000'000,
                                    rows_.size() - 1));
      }
    }
  }

  void Take(const decode::Picture& picture) {
    ++reply_.frames_decoded;
    if (failed() || picture.packet >= rows_.size()) return;
    const format::PacketRow& row = rows_[picture.packet];
    if (row.frame == format::kNoFrame) return;
    const auto it = wanted_.find(row.frame);
    if (it == wanted_.end()) return;
    const std::vector<std::uint32_t> targets = std::move(it->second);
    wanted_.erase(it);
    if (!HashFits(picture, row, targets)) return;
    if (auto s = layout::CheckPixelFormat(picture.pixel_format); !s.ok()) {
      return Fail(JobReason::kUnsupported, FirstLine(s));
    }
    Write(picture, targets);
  }

  bool HashFits(const decode::Picture& picture, const format::PacketRow& row,
                const std::vector<std::uint32_t>& targets) {
    bool needed = row.hash != 0;
    for (auto i : targets) needed = needed || job_.targets[i].hash != 0;
    if (!needed) return true;
    const std::uint64_t hash = decode::HashPicture(picture);
    bool fits = row.hash == 0 || row.hash == hash;
    for (auto i : targets) {
      fits = fits && (job_.targets[i].hash == 0 || job_.targets[i].hash == hash);
    }
    if (!fits) {
      Fail(JobReason::kHashDiffers,
           absl::StrFormat("frame %d: hash differs; found %016x, at import "
                           "%016x", row.frame, hash, row.hash));
    }
    return fits;
  }

  // Converts once for each transform, copies for further destinations.
  void Write(const decode::Picture& picture,
             const std::vector<std::uint32_t>& targets) {
    struct Made {
      std::span<std::uint8_t> bytes;
      Digest128 digest;
    };
    std::map<std::uint32_t, Made> made;  // by transform
    for (const std::uint32_t i : targets) {
      const auto& target = job_.targets[i];
      layout::VideoTransform t = job_.transforms[target.transform];
      // A stream may change its size: the picture's own counts.
      t.src_width = picture.width;
      t.src_height = picture.height;
      const auto plan = runner_.cache_.Plan(t);
      if (!plan.ok()) {
        return Fail(ReasonOf(plan.status()), FirstLine(plan.status()));
      }
      const auto out =
          runner_.arena_.subspan(target.destination, (*plan)->frame_bytes());
      runner_.PopulateDestination(target.destination, out.size());
      const auto [it, fresh] = made.try_emplace(target.transform);
      if (fresh) {
        (*plan)->Convert({picture.planes[0], picture.planes[1],
                          picture.planes[2], picture.strides[0],
                          picture.strides[1], picture.strides[2]},
                         runner_.scratch_, out);
        it->second = {out, hash::Xxh3_128(out)};
      } else {
        std::memcpy(out.data(), it->second.bytes.data(), out.size());
      }
      ++reply_.frames_done;
      if (!sink_(i, it->second.digest)) {
        return Fail(JobReason::kCancelled, "the daemon is gone");
      }
    }
  }

  JobRunner& runner_;
  const shm::DecodeJob& job_;
  const TargetSink& sink_;
  const std::uint64_t cpu_start_;
  shm::WorkerReply reply_;
  std::vector<format::PacketRow> rows_;  // by ordinal of the packet
  std::map<std::uint32_t, std::vector<std::uint32_t>> wanted_;  // by frame
};

JobRunner::JobRunner(std::span<std::uint8_t> arena,
                     std::span<const std::uint8_t> input)
    : arena_(arena),
      input_(input),
      populated_((arena.size() + kPopulatePiece - 1) / kPopulatePiece) {}

void JobRunner::PopulateDestination(std::uint64_t offset, std::uint64_t bytes) {
  for (std::uint64_t p = offset / kPopulatePiece;
       p <= (offset + bytes - 1) / kPopulatePiece; ++p) {
    if (populated_[p]) continue;
    populated_[p] = true;
    const std::uint64_t at = p * kPopulatePiece;
    shm::Populate(arena_.data() + at,
                  std::min(kPopulatePiece, arena_.size() - at),
                  shm::Access::kReadWrite);
  }
}

shm::WorkerReply JobRunner::Run(const shm::DecodeJob& job,
                                const TargetSink& sink) {
  return Attempt(*this, job, sink).Run();
}

}  // namespace penstock::worker
