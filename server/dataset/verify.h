#ifndef PENSTOCK_SERVER_DATASET_VERIFY_H_
#define PENSTOCK_SERVER_DATASET_VERIFY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::dataset {

// One thing that is not as it was published.
struct Fault {
  std::string file;     // relative to the dataset
  std::string place;    // "video GOP 3, part 0", "footer", …
  std::string capture;  // id, empty where it is no capture's
  std::uint64_t offset = 0;
  std::string what;
};

struct VerifyReport {
  std::string id;
  std::uint64_t bytes = 0, blocks = 0;
  std::vector<Fault> faults;
};

// Reads every byte of a dataset version and compares it with what the manifest
// says; goes on after a fault. Names block and capture where a shard differs.
//
// kNotFound: no dataset there. Damage is not an error: it is in the report.
absl::StatusOr<VerifyReport> VerifyDataset(const std::string& dir);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_VERIFY_H_
