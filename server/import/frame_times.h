#ifndef PENSTOCK_SERVER_IMPORT_FRAME_TIMES_H_
#define PENSTOCK_SERVER_IMPORT_FRAME_TIMES_H_

#include "server/import/video_ingest.h"

namespace penstock::import {

// Completes the pts of `video.frames` (format::kNoPts where the source has
// none, or order breaks) and their durations; finds constant rate and holes.
// Times that were made up are flagged in the packets and counted in the notes.
void CompleteFrameTimes(IngestedVideo& video);

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_FRAME_TIMES_H_
