#ifndef PENSTOCK_SERVER_IMPORT_STAGING_H_
#define PENSTOCK_SERVER_IMPORT_STAGING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace penstock::import {

// The folder OUT.importing in which a dataset is built, held by a lock. What an
// interrupted import left there is removed first.
class Staging {
 public:
  // kAlreadyExists:      `out` is there and is not an empty folder
  // kFailedPrecondition: another import holds OUT.importing
  static absl::StatusOr<std::unique_ptr<Staging>> Create(std::string out);
  ~Staging();  // removes the folder unless Publish() succeeded
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const std::string& dir() const { return dir_; }
  // Syncs the folders and renames to `out`: the last step.
  absl::Status Publish();

 private:
  Staging(std::string out, std::string dir, int lock)
      : out_(std::move(out)), dir_(std::move(dir)), lock_(lock) {}
  std::string out_, dir_;
  int lock_;
  bool published_ = false;
};

// Writes a whole file and syncs it. kResourceExhausted: the disk is full
absl::Status WriteFileSynced(const std::string& path,
                             std::string_view bytes);

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_STAGING_H_
