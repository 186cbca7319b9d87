#ifndef PENSTOCK_SERVER_IMPORT_SCAN_H_
#define PENSTOCK_SERVER_IMPORT_SCAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/types/ids.h"
#include "server/import/mapping.h"

namespace penstock::import {

// One capture as found on disk.
struct CaptureSource {
  std::string video;         // path
  std::string mapping_file;  // capture.json, empty: none
  CaptureMapping mapping;
  std::vector<std::string> undeclared;  // files beside it that no one reads
  Digest256 id{};            // filled by HashSource
  absl::Status fault;        // why it cannot be imported
};

// Finds the captures in files and folders, in the order of their paths. A
// folder with a capture.json is one capture; else every video in it is one,
// with `NAME.capture.json` beside it where there is one. A file given by name
// is taken whatever its extension.
//
// What is wrong with one capture (a mapping that does not parse) is its `fault`;
// the others are found all the same.
//
// kNotFound:        a source that does not exist
// kInvalidArgument: a folder without captures
absl::StatusOr<std::vector<CaptureSource>> ScanSources(
    const std::vector<std::string>& sources);

// Sets `id`: SHA-256 over the content of video, sidecars and mapping.
absl::Status HashSource(CaptureSource& source);

// Folder of the capture, with a '/' at its end.
std::string FolderOf(const CaptureSource& source);

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_SCAN_H_
