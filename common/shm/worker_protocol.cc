#include "common/shm/worker_protocol.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/format/bytes.h"
#include "common/status/status.h"

namespace penstock::shm {
namespace {

using format::ByteReader;
using format::ByteWriter;

constexpr std::size_t kTransformBytes = 4 + 4 + 1 + 1 + 1 + 2 + 4 + 4 + 1 + 1 + 1;
constexpr std::size_t kNameBytesMax = 64;

absl::Status Bad(std::string what, std::string found = "",
                 std::string expected = "") {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.where = "decode job",
       .what = std::move(what),
       .found = std::move(found),
       .expected = std::move(expected),
       .action = "report it: the daemon sends only jobs that fit"});
}

absl::Status CheckCount(std::string_view what, std::size_t found,
                        std::size_t max) {
  if (found >= 1 && found <= max) return absl::OkStatus();
  return Bad(absl::StrFormat("%s out of bounds", what),
             absl::StrFormat("%d", found),
             absl::StrFormat("1 to %d; split the job", max));
}

absl::Status CheckBounds(const DecodeJob& job) {
  PENSTOCK_RETURN_IF_ERROR(
      CheckCount("blocks", job.blocks.size(), kJobBlocksMax));
  PENSTOCK_RETURN_IF_ERROR(
      CheckCount("transforms", job.transforms.size(), kJobTransformsMax));
  PENSTOCK_RETURN_IF_ERROR(
      CheckCount("targets", job.targets.size(), kJobTargetsMax));
  if (job.codec.extradata.size() > kExtradataBytesMax ||
      job.codec.codec.size() > kNameBytesMax ||
      job.codec.pixel_format.size() > kNameBytesMax) {
    return Bad("codec parameters are too long",
               absl::StrFormat("%d bytes of extradata",
                               job.codec.extradata.size()),
               absl::StrFormat("at most %d", kExtradataBytesMax));
  }
  for (std::size_t i = 0; i < job.targets.size(); ++i) {
    if (job.targets[i].transform >= job.transforms.size()) {
      return Bad(absl::StrFormat("target %d names no transform", i),
                 absl::StrFormat("%d", job.targets[i].transform),
                 absl::StrFormat("below %d", job.transforms.size()));
    }
  }
  return absl::OkStatus();
}

void PutCodec(ByteWriter& out, const format::CodecParameters& c) {
  out.PutString(c.codec);
  out.PutString(c.pixel_format);
  out.PutSized(c.extradata);
  out.Put(c.profile);
  out.Put(c.level);
  out.Put(c.width);
  out.Put(c.height);
}

format::CodecParameters GetCodec(ByteReader& in) {
  format::CodecParameters c;
  c.codec = in.GetString();
  c.pixel_format = in.GetString();
  const auto extradata = in.GetSized();
  c.extradata.assign(extradata.begin(), extradata.end());
  c.profile = in.Get<std::int32_t>();
  c.level = in.Get<std::int32_t>();
  c.width = in.Get<std::uint32_t>();
  c.height = in.Get<std::uint32_t>();
  return c;
}

void PutTransform(ByteWriter& out, const layout::VideoTransform& t) {
  out.Put(t.src_width);
  out.Put(t.src_height);
  out.Put(t.siting);
  out.Put(t.matrix);
  out.Put(static_cast<std::uint8_t>(t.full_range));
  out.Put(t.rotation);
  out.Put(t.width);
  out.Put(t.height);
  out.Put(t.layout);
  out.Put(t.colour);
  out.Put(t.resize);
}

layout::VideoTransform GetTransform(ByteReader& in) {
  layout::VideoTransform t;
  t.src_width = in.Get<std::uint32_t>();
  t.src_height = in.Get<std::uint32_t>();
  t.siting = in.Get<layout::ChromaSiting>();
  t.matrix = in.Get<std::uint8_t>();
  t.full_range = in.Get<std::uint8_t>() != 0;
  t.rotation = in.Get<std::uint16_t>();
  t.width = in.Get<std::uint32_t>();
  t.height = in.Get<std::uint32_t>();
  t.layout = in.Get<layout::PixelLayout>();
  t.colour = in.Get<layout::Colour>();
  t.resize = in.Get<layout::Resize>();
  return t;
}

bool Inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

}  // namespace

absl::StatusOr<std::vector<std::uint8_t>> EncodeJob(const DecodeJob& job) {
  PENSTOCK_RETURN_IF_ERROR(CheckBounds(job));
  ByteWriter out;
  out.Put(kWorkerMagic);
  out.Put(kWorkerVersion);
  out.Put(job.id);
  out.Put(job.cpu_limit_ns);
  PutCodec(out, job.codec);
  out.Put(static_cast<std::uint32_t>(job.blocks.size()));
  for (const auto& b : job.blocks) {
    out.Put(b.offset);
    out.Put(b.bytes);
  }
  out.Put(static_cast<std::uint32_t>(job.transforms.size()));
  for (const auto& t : job.transforms) PutTransform(out, t);
  out.Put(static_cast<std::uint32_t>(job.targets.size()));
  for (const auto& t : job.targets) {
    out.Put(t.frame);
    out.Put(t.transform);
    out.Put(t.destination);
    out.Put(t.hash);
  }
  if (out.size() > kJobBytesMax) {
    return Bad("too long to send", absl::StrFormat("%d bytes", out.size()),
               absl::StrFormat("at most %d; split its targets", kJobBytesMax));
  }
  return out.Take();
}

absl::StatusOr<DecodeJob> ParseJob(std::span<const std::uint8_t> bytes) {
  ByteReader in(bytes);
  if (in.Get<std::uint32_t>() != kWorkerMagic ||
      in.Get<std::uint32_t>() != kWorkerVersion) {
    return Bad("unknown version",
               "", "daemon and penstock-decoder of one build");
  }
  DecodeJob job;
  job.id = in.Get<std::uint64_t>();
  job.cpu_limit_ns = in.Get<std::uint64_t>();
  job.codec = GetCodec(in);
  job.blocks.resize(in.GetCount(16));
  for (auto& b : job.blocks) {
    b.offset = in.Get<std::uint64_t>();
    b.bytes = in.Get<std::uint64_t>();
  }
  job.transforms.resize(in.GetCount(kTransformBytes));
  for (auto& t : job.transforms) t = GetTransform(in);
  job.targets.resize(in.GetCount(24));
  for (auto& t : job.targets) {
    t.frame = in.Get<std::uint32_t>();
    t.transform = in.Get<std::uint32_t>();
    t.destination = in.Get<std::uint64_t>();
    t.hash = in.Get<std::uint64_t>();
  }
  if (!in.ok()) return Bad("cut off", absl::StrFormat("%d bytes", bytes.size()));
  if (in.left() != 0) {
    return Bad("bytes are left over", absl::StrFormat("%d", in.left()), "0");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckBounds(job));
  return job;
}

absl::Status CheckJob(const DecodeJob& job, std::uint64_t arena_bytes,
                      std::uint64_t input_bytes) {
  PENSTOCK_RETURN_IF_ERROR(CheckBounds(job));
  for (std::size_t i = 0; i < job.blocks.size(); ++i) {
    const auto& b = job.blocks[i];
    if (b.bytes == 0 || !Inside(b.offset, b.bytes, input_bytes)) {
      return Bad(absl::StrFormat("block %d lies outside the input area", i),
                 absl::StrFormat("bytes %d+%d", b.offset, b.bytes),
                 absl::StrFormat("at most %d", input_bytes));
    }
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (std::size_t i = 0; i < job.targets.size(); ++i) {
    const auto& t = job.targets[i];
    const std::uint64_t bytes = layout::FrameBytes(job.transforms[t.transform]);
    if (bytes == 0 || !Inside(t.destination, bytes, arena_bytes)) {
      return Bad(absl::StrFormat("target %d lies outside the arena", i),
                 absl::StrFormat("bytes %d+%d", t.destination, bytes),
                 absl::StrFormat("at most %d", arena_bytes));
    }
    ranges.emplace_back(t.destination, t.destination + bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) {
      return Bad("two targets overlap",
                 absl::StrFormat("at byte %d", ranges[i].first));
    }
  }
  return absl::OkStatus();
}

std::string_view JobReasonName(JobReason reason) {
  switch (reason) {
    case JobReason::kOk: return "ok";
    case JobReason::kBadJob: return "bad job";
    case JobReason::kUnsupported: return "unsupported";
    case JobReason::kBlockDamaged: return "block damaged";
    case JobReason::kHashDiffers: return "hash differs";
    case JobReason::kFrameMissing: return "frame missing";
    case JobReason::kCpuLimit: return "CPU limit";
    case JobReason::kNoMemory: return "no memory";
    case JobReason::kWorkerDied: return "worker died";
    case JobReason::kTimeout: return "timeout";
    case JobReason::kCancelled: return "cancelled";
  }
  return "unknown";
}

void PutText(std::string_view text, std::span<char> field) {
  std::fill(field.begin(), field.end(), '\0');
  const std::size_t n = std::min(text.size(), field.size() - 1);
  for (std::size_t i = 0; i < n; ++i) {
    field[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : ' ';
  }
}

std::string TextOf(std::span<const char> field) {
  std::string text;
  for (char c : field) {
    if (c == '\0') break;
    text.push_back(c >= ' ' && c <= '~' ? c : ' ');
  }
  return text;
}

}  // namespace penstock::shm
