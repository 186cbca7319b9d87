#ifndef PENSTOCK_SERVER_WORKER_JOB_RUNNER_H_
#define PENSTOCK_SERVER_WORKER_JOB_RUNNER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/shm/worker_protocol.h"
#include "common/types/ids.h"
#include "server/worker/decoder_cache.h"

namespace penstock::worker {

// Does the decode jobs of one arena: packets from the input area, finished
// pixels into the arena. The same job gives the same bytes, whatever ran before.
//
// Threading: one thread. No process, socket or clock but the CPU clock, so tests
//   run it directly.
// Ownership: borrows both areas.
// Trust: every offset is checked; a block is used after its CRC; a picture is
//   written after it equals the hash of its row.
class JobRunner {
 public:
  // Called when a target lies finished in the arena. False ends the job (the
  // daemon is gone).
  using TargetSink =
      std::function<bool(std::uint32_t target, const Digest128& digest)>;

  JobRunner(std::span<std::uint8_t> arena, std::span<const std::uint8_t> input);

  // Runs a job to its end; the reply is its kJobDone message.
  shm::WorkerReply Run(const shm::DecodeJob& job, const TargetSink& sink);

 private:
  class Attempt;
  // Makes the pages of a destination present before they are written.
  void PopulateDestination(std::uint64_t offset, std::uint64_t bytes);

  std::span<std::uint8_t> arena_;
  std::span<const std::uint8_t> input_;
  DecoderCache cache_;
  layout::TransformScratch scratch_;
  std::vector<bool> populated_;  // pieces of the arena
};

// CPU time of this process.
std::uint64_t CpuNs();

}  // namespace penstock::worker

#endif  // PENSTOCK_SERVER_WORKER_JOB_RUNNER_H_
