#ifndef PENSTOCK_SERVER_IMPORT_TRACK_BLOCKS_H_
#define PENSTOCK_SERVER_IMPORT_TRACK_BLOCKS_H_

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "common/format/block.h"
#include "server/import/capture_ingest.h"

// Blocks of the tracks of one capture, for a time range: what an extent holds.
namespace penstock::import {

// Half-open, on the capture's clock; the first extent starts at INT64_MIN and
// the last ends at INT64_MAX, so that no row is left out.
struct TimeRange {
  std::int64_t begin_ns = INT64_MIN, end_ns = INT64_MAX;
};

struct TrackBlock {
  std::vector<std::uint8_t> bytes;
  std::uint32_t rows = 0;  // without held or carried rows
  std::int64_t first_ns = 0, end_ns = 0;
};

// What is held down while the rows of an event table are walked in order; one
// per table, so that an hour of extents walks the table once.
class HeldInputs {
 public:
  explicit HeldInputs(const EventTable& table);
  // What is held after the rows before `end`; `end` never goes back.
  std::vector<format::EventRow> Before(std::size_t end);

 private:
  using Key = std::tuple<format::EventKind, std::uint16_t, std::uint32_t>;
  void Apply(const format::EventRow& row);
  const EventTable& table_;
  std::size_t applied_ = 0;
  std::map<Key, format::EventRow> held_;
};

// `header` names capture, track and the first sequence number; each block gets
// the next. Blocks hold at most 4 MiB of table and payload.
std::vector<TrackBlock> EventBlocks(const EventTable& table, HeldInputs& held,
                                    TimeRange range,
                                    format::BlockHeader header);
std::vector<TrackBlock> ColumnBlocks(const ColumnTable& table, TimeRange range,
                                     format::BlockHeader header);
std::vector<TrackBlock> AudioBlocks(const IngestedCapture& capture,
                                    const IngestedAudio& audio,
                                    std::span<const std::uint8_t> spool,
                                    TimeRange range,
                                    format::BlockHeader header);
std::vector<TrackBlock> TextBlocks(const std::vector<TextMapping>& texts,
                                   TimeRange range, format::BlockHeader header);
// The parts of one GOP, back to back.
std::vector<std::vector<std::uint8_t>> GopBlocks(
    const IngestedVideo& video, const GopPlan& gop,
    std::span<const std::uint8_t> spool, format::BlockHeader header);

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_TRACK_BLOCKS_H_
