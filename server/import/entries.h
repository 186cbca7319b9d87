#ifndef PENSTOCK_SERVER_IMPORT_ENTRIES_H_
#define PENSTOCK_SERVER_IMPORT_ENTRIES_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "server/import/video_ingest.h"

namespace penstock::import {

// Splits the packets of `video` into GOPs: `candidates` are the packets that
// might be entries (ascending, the first is 0). A candidate becomes an entry
// when decoding from it gives, for every frame at or after it up to the next
// entry, the picture of the linear decode; one that does not is merged into
// the GOP before. Finds how many GOPs before it the lead frames of each need.
//
// kInvalidArgument: a GOP too large for the format
absl::Status SplitIntoGops(std::span<const std::uint8_t> spool,
                           std::vector<std::uint32_t> candidates,
                           IngestedVideo& video);

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_ENTRIES_H_
