#ifndef PENSTOCK_COMMON_SHM_WORKER_PROTOCOL_H_
#define PENSTOCK_COMMON_SHM_WORKER_PROTOCOL_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/shard.h"
#include "common/layout/transform.h"
#include "common/types/ids.h"

// What the daemon, the decoder zygote and its workers say to each other, over
// SOCK_SEQPACKET sockets. One host, one build: little-endian, versioned only to
// refuse a mismatch.
//
//   control socket (daemon - zygote)
//     zygote -> daemon  Hello
//     daemon -> zygote  MapArena + 2 descriptors (arena, input)  -> Done
//                       DropArena                                -> Done
//                       ForkWorker + 1 descriptor                -> Done (pid)
//                       KillWorker (no reply; Exited follows)
//     zygote -> daemon  Exited (a worker was reaped)
//   worker socket (daemon - worker)
//     daemon -> worker  one encoded DecodeJob
//     worker -> daemon  Frame for every target, then JobDone; or JobDone alone
//   either socket: end-of-file ends the process that reads it
namespace penstock::shm {

inline constexpr std::uint32_t kWorkerMagic = 0x4B575350;  // "PSWK"
inline constexpr std::uint32_t kWorkerVersion = 1;
inline constexpr int kControlFd = 3;  // in the zygote; a worker's socket too

enum class ControlKind : std::uint32_t {
  kHello = 1,
  kMapArena = 2,
  kDropArena = 3,
  kForkWorker = 4,
  kDone = 5,
  kExited = 6,
  kKillWorker = 7,  // by the zygote: it alone knows that the pid is still his
};

// Every message on the control socket, both directions.
struct ControlMessage {
  std::uint32_t magic = kWorkerMagic;
  std::uint32_t version = kWorkerVersion;
  ControlKind kind = ControlKind::kHello;
  std::uint32_t request = 0;  // kDone repeats it
  std::uint64_t arena = 0;
  std::uint64_t arena_bytes = 0, input_bytes = 0;  // kMapArena
  std::uint64_t worker = 0;                        // kForkWorker, kKillWorker, kExited
  std::int32_t pid = 0;     // kHello, kDone of kForkWorker, kExited
  std::int32_t status = 0;  // kDone: absl code, 0 OK; kExited: wait status
  char text[120] = {};      // kDone that is not OK; zero-terminated
};
static_assert(sizeof(ControlMessage) == 176);

// A block in the input area.
struct BlockRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

// One frame to make.
struct DecodeTarget {
  std::uint32_t frame = 0;      // `frame` of its row in the packet tables
  std::uint32_t transform = 0;  // index in the job
  std::uint64_t destination = 0;  // offset in the arena
  // Must equal the picture's hash too, unless 0. (The packet table's hash is
  // checked in any case.)
  std::uint64_t hash = 0;
  friend bool operator==(const DecodeTarget&, const DecodeTarget&) = default;
};

// Below a socket's default send buffer (208 KiB); a job at all the bounds below
// fits.
inline constexpr std::size_t kJobBytesMax = 192u << 10;
inline constexpr std::size_t kJobBlocksMax = 1024;
inline constexpr std::size_t kJobTransformsMax = 16;
inline constexpr std::size_t kJobTargetsMax = 4096;
inline constexpr std::size_t kExtradataBytesMax = 64u << 10;

// Decode the packets of `blocks`, the first of which begins with an entry, and
// write the frames that are wanted. Several targets may want one frame.
struct DecodeJob {
  std::uint64_t id = 0;  // set by the pool
  format::CodecParameters codec;
  std::vector<BlockRange> blocks;  // in decode order
  std::vector<layout::VideoTransform> transforms;
  std::vector<DecodeTarget> targets;
  std::uint64_t cpu_limit_ns = 0;  // of the worker, for this job; 0: none
  friend bool operator==(const DecodeJob&, const DecodeJob&) = default;
};

// kInvalidArgument: more than the bounds above; says what to split
absl::StatusOr<std::vector<std::uint8_t>> EncodeJob(const DecodeJob& job);

// Parses what EncodeJob made; bytes are a private copy of hostile ones.
//
// kInvalidArgument: cut off, left over, past a bound, an index out of range
absl::StatusOr<DecodeJob> ParseJob(std::span<const std::uint8_t> bytes);

// Checks a job against the areas it names: every block inside the input, every
// destination with its frame inside the arena, destinations not overlapping.
//
// kInvalidArgument: names the entry
absl::Status CheckJob(const DecodeJob& job, std::uint64_t arena_bytes,
                      std::uint64_t input_bytes);

// How a job ended.
enum class JobReason : std::uint32_t {
  kOk = 0,
  kBadJob = 1,        // the daemon asked for something impossible
  kUnsupported = 2,   // codec or pixel format
  kBlockDamaged = 3,  // CRC or structure of a block: read it again
  kHashDiffers = 4,   // a picture is not the one hashed at import
  kFrameMissing = 5,  // the decoder did not give a wanted frame
  kCpuLimit = 6,
  kNoMemory = 7,
  kWorkerDied = 8,    // set by the pool
  kTimeout = 9,       // set by the pool
  kCancelled = 10,    // set by the pool
};
std::string_view JobReasonName(JobReason reason);

enum class ReplyKind : std::uint32_t { kFrame = 1, kJobDone = 2 };

// Every message from a worker.
struct WorkerReply {
  std::uint32_t magic = kWorkerMagic;
  std::uint32_t version = kWorkerVersion;
  ReplyKind kind = ReplyKind::kFrame;
  std::uint32_t target = 0;  // kFrame: index in the job
  std::uint64_t job = 0;
  std::uint64_t digest_high = 0, digest_low = 0;  // kFrame: of the bytes written
  JobReason reason = JobReason::kOk;              // kJobDone
  std::uint32_t frames_done = 0;                  // kJobDone: targets written
  std::uint32_t frames_decoded = 0;               // kJobDone: pictures
  std::uint32_t reserved = 0;
  std::uint64_t cpu_ns = 0;                       // kJobDone
  char text[120] = {};  // kJobDone that is not OK; zero-terminated
};
static_assert(sizeof(WorkerReply) == 184);

// Copies at most the field's size less one, printable ASCII only.
void PutText(std::string_view text, std::span<char> field);
// The text of a field that a peer filled: bounded, printable.
std::string TextOf(std::span<const char> field);

}  // namespace penstock::shm

#endif  // PENSTOCK_COMMON_SHM_WORKER_PROTOCOL_H_
