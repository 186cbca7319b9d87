#ifndef PENSTOCK_LOADTEST_MEASURE_BENCH_H_
#define PENSTOCK_LOADTEST_MEASURE_BENCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "loadtest/measure/pairs.h"

namespace penstock::loadtest {

// Where a run works: the programs of one build, and a scratch folder on a disk.
struct Bench {
  std::string bin;      // folder of penstock, penstockd, …
  std::string scratch;  // removed at the end
  std::string captures; // folder of the recordings
  std::string dataset;  // imported from them
  int pairs = 7;
  bool full_scale = false;  // of generated datasets
};

double NowSeconds();

// Runs a shell command; its stdout. kInternal: it failed (with the command)
absl::StatusOr<std::string> Shell(const std::string& command);

// One video output of a feed over the bench's dataset.
struct FeedShape {
  int global_batch = 8, frames = 8, width = 256, height = 144;
  // 0: the whole dataset for ever; else one pass over one capture with windows
  // this many frames apart: data that ends, so that nothing is made while what
  // is there is taken.
  int hop = 0;
};
absl::StatusOr<std::string> WriteFeed(const Bench& bench,
                                      const std::string& name,
                                      const FeedShape& shape);

// penstockd in a folder of its own; ended by the destructor.
class Daemon {
 public:
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const Bench& bench,
                                                       int prefetch_steps,
                                                       std::uint64_t arena);
  ~Daemon();
  const std::string& address() const { return address_; }
  int tcp_port() const { return port_; }

 private:
  Daemon(std::string address, int pid, int port)
      : address_(std::move(address)), pid_(pid), port_(port) {}
  std::string address_;
  int pid_, port_;
};

// The measures; each gives one or more lines of the table.
absl::StatusOr<std::vector<Ratio>> MeasureRead(const Bench& bench);
absl::StatusOr<std::vector<Ratio>> MeasureDecode(const Bench& bench);
absl::StatusOr<std::vector<Ratio>> MeasureDelivery(const Bench& bench);
absl::StatusOr<std::vector<Ratio>> MeasureRemote(const Bench& bench);
absl::StatusOr<std::vector<Ratio>> MeasureAttach(const Bench& bench);
absl::StatusOr<std::vector<Ratio>> MeasurePlan(const Bench& bench);
absl::StatusOr<std::vector<Ratio>> MeasureOpen(const Bench& bench);

// Opens a feed in this process and prints seconds and the MiB that are resident
// after it and were at most: what MeasureOpen runs programs for.
absl::Status OpenFeedAndPrint(const std::string& feed, const std::string& cache);

}  // namespace penstock::loadtest

#endif  // PENSTOCK_LOADTEST_MEASURE_BENCH_H_
