#ifndef PENSTOCK_SERVER_IMPORT_CAPTURE_INGEST_H_
#define PENSTOCK_SERVER_IMPORT_CAPTURE_INGEST_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/import/audio_ingest.h"
#include "server/import/scan.h"
#include "server/import/sidecar.h"
#include "server/import/spool.h"
#include "server/import/video_ingest.h"

namespace penstock::import {

struct EventTrack {
  SidecarMapping mapping;
  EventTable table;
};
struct ColumnTrack {
  SidecarMapping mapping;
  ColumnTable table;  // t_ns on the capture's clock
};

// A capture read, decoded and verified; its packets wait in the spool.
struct IngestedCapture {
  CaptureSource source;
  std::string container;
  std::unique_ptr<Spool> spool;
  std::vector<IngestedVideo> videos;  // at least one
  std::vector<IngestedAudio> audios;
  std::vector<EventTrack> events;
  std::vector<ColumnTrack> columns;
  std::int64_t origin_ns = 0;  // source time of the capture's time zero
  std::vector<std::string> notes;

  std::uint64_t LostFrames() const;
  std::uint64_t DamagedFrames() const;
};

// ns on the capture's clock of a pts of `stream`.
std::int64_t CaptureNs(const IngestedCapture& capture,
                       const demux::Stream& stream, std::int64_t pts);

// Reads one capture: demux once, decode every picture, complete times, verify
// entries, read and pair the sidecars.
//
// Threading: one thread per call; `cancel` may be set by another.
//
// kInvalidArgument: what is wrong with which file
// kUnimplemented:   a codec that is not decoded
// kCancelled:       `cancel` was set
absl::StatusOr<IngestedCapture> IngestCapture(CaptureSource source,
                                              const std::string& spool_dir,
                                              const std::atomic<bool>& cancel);

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_CAPTURE_INGEST_H_
