#ifndef PENSTOCK_LOADTEST_MEASURE_CONSUME_H_
#define PENSTOCK_LOADTEST_MEASURE_CONSUME_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "loadtest/measure/bench.h"

namespace penstock::loadtest {

// What taking a number of batches took, all of them ready beforehand.
struct Consumed {
  double seconds = 0;          // of take and read together
  double handoff_seconds = 0;  // median of ps_next alone, paced
  std::uint64_t bytes = 0;     // of one batch
  std::uint64_t steps = 0;
  std::uint64_t checksum = 0;
};

// Attaches a rank to a job of its own whose data ends, waits until all of it is
// made (it fits the daemon's window), then takes batch after batch and reads
// every byte in place, or (`paced`) reads nothing and lets 2 ms pass between
// them, awake: what taking alone costs. `address`: as ps_attach.
absl::StatusOr<Consumed> ConsumeReady(const std::string& address,
                                      const std::string& status_address,
                                      const std::string& feed,
                                      const std::string& job, bool paced);

// Waits until the daemon has published `steps` steps of the job.
absl::Status WaitMade(const std::string& status_address, const std::string& job,
                      std::uint64_t steps);

// Sum of the 8-byte words: one read of every byte.
std::uint64_t ReadThrough(std::span<const std::uint8_t> bytes);

}  // namespace penstock::loadtest

#endif  // PENSTOCK_LOADTEST_MEASURE_CONSUME_H_
