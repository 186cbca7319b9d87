#ifndef PENSTOCK_SERVER_IMPORT_AUDIO_INGEST_H_
#define PENSTOCK_SERVER_IMPORT_AUDIO_INGEST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/block.h"
#include "server/demux/demuxer.h"
#include "server/import/spool.h"

namespace penstock::import {

// What import knows of one audio track, in lossless packets.
struct IngestedAudio {
  demux::Stream stream;  // codec and time base of the stored packets
  std::string source_codec;  // what it was before; for the lineage
  std::string decoder;       // FFmpeg's decoder that was used, empty: none
  std::vector<format::PacketRow> packets;  // duration in samples
  std::vector<std::uint64_t> spool_offset;
  std::uint64_t samples = 0;
  std::uint64_t gaps = 0;
  std::vector<std::string> notes;
};

// Keeps FLAC and PCM packets as they are; decodes everything else once (the
// fixed-point decoder where FFmpeg has one, otherwise with CPU flags off, so
// that every host gets the same samples) and stores it as 16-bit FLAC.
//
// Threading: one thread. Ownership: borrows `spool`.
class AudioIngest {
 public:
  // kUnimplemented: no decoder for this codec
  static absl::StatusOr<std::unique_ptr<AudioIngest>> Create(
      const demux::Stream& stream, Spool& spool, std::string where);
  virtual ~AudioIngest() = default;
  virtual absl::Status Add(const demux::Packet& packet) = 0;
  virtual absl::StatusOr<IngestedAudio> Finish() = 0;
};

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_AUDIO_INGEST_H_
