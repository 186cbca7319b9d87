#ifndef PENSTOCK_SERVER_DATASET_CACHE_FILE_H_
#define PENSTOCK_SERVER_DATASET_CACHE_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

// Files that spare work and that nothing is lost with; how files are replaced.
namespace penstock::dataset {

// Where they lie: $CACHE_DIRECTORY (systemd's), else $XDG_CACHE_HOME/penstock, else
// $HOME/.cache/penstock; empty: nowhere.
std::string CacheFolder();

// Replaces a file at once: readers see the old bytes or the new ones. Errors: from
// errno
absl::Status ReplaceFile(const std::string& path, std::span<const std::uint8_t> bytes,
                         mode_t rights);

// The same for a file of ours, after making its folder.
absl::Status KeepFile(const std::string& path, std::span<const std::uint8_t> bytes);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_CACHE_FILE_H_
