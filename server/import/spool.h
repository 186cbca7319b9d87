#ifndef PENSTOCK_SERVER_IMPORT_SPOOL_H_
#define PENSTOCK_SERVER_IMPORT_SPOOL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::import {

// Packets of one capture between the pass that reads them and the one that
// writes shards: an unnamed file in the staging folder, gone with the process.
//
// Threading: one thread. Bounds: the size of the capture's packets on disk.
class Spool {
 public:
  // kUnavailable, kPermissionDenied: the folder
  static absl::StatusOr<std::unique_ptr<Spool>> Create(const std::string& dir);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // Offset of the appended bytes. kResourceExhausted: the disk is full
  absl::StatusOr<std::uint64_t> Append(std::span<const std::uint8_t> bytes);
  // Everything appended so far; call when no more is to come.
  absl::StatusOr<std::span<const std::uint8_t>> Map();

 private:
  explicit Spool(int fd) : fd_(fd) {}
  absl::Status Flush();
  int fd_;
  std::uint64_t bytes_ = 0;
  std::vector<std::uint8_t> pending_;
  void* map_ = nullptr;
  std::size_t map_bytes_ = 0;
};

// write() until all is written. kResourceExhausted: the disk is full
absl::Status WriteAll(int fd, std::span<const std::uint8_t> bytes,
                      const std::string& where);

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_SPOOL_H_
