#ifndef PENSTOCK_SERVER_APP_DIR_LOCK_H_
#define PENSTOCK_SERVER_APP_DIR_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace penstock::app {

// A folder that one daemon owns: a lock that goes with the process, whatever
// ends it, and the owner's pid for those who come second.
class DirLock {
 public:
  // Makes the folder when it is not there.
  //
  // kFailedPrecondition: another process owns it (its pid)
  // kPermissionDenied, …: from errno
  static absl::StatusOr<std::unique_ptr<DirLock>> Take(const std::string& dir,
                                                       const char* what);
  ~DirLock();
  DirLock(const DirLock&) = delete;
  DirLock& operator=(const DirLock&) = delete;

 private:
  explicit DirLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace penstock::app

#endif  // PENSTOCK_SERVER_APP_DIR_LOCK_H_
