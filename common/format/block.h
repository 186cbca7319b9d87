#ifndef PENSTOCK_COMMON_FORMAT_BLOCK_H_
#define PENSTOCK_COMMON_FORMAT_BLOCK_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/capture_index.h"

// A block is the unit of checksum and of reading: a header, a table and a
// payload of one track under one CRC32C. See README.md for the byte layout.
namespace penstock::format {

inline constexpr std::uint32_t kBlockMagic = 0x4B4C4250;  // "PBLK"
inline constexpr std::uint16_t kBlockVersion = 1;
inline constexpr std::size_t kBlockAlignment = 64;
inline constexpr std::size_t kBlockBytesMax = 8u << 20;
inline constexpr std::uint32_t kNoFrame = 0xFFFFFFFF;
inline constexpr std::int64_t kNoPts = INT64_MIN;

struct BlockHeader {
  std::uint32_t magic = kBlockMagic;
  std::uint16_t version = kBlockVersion;
  TrackKind kind = TrackKind::kVideo;
  std::uint8_t flags = 0;
  std::uint32_t capture = 0;   // in the shard's footer
  std::uint32_t track = 0;     // in the shard's footer
  std::uint32_t sequence = 0;  // GOP or segment of the track, from 0
  std::uint16_t part = 0, part_count = 1;  // blocks of one GOP
  std::uint32_t entries = 0;               // rows of the table
  std::uint32_t table_bytes = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t reserved[6] = {};
  std::uint32_t crc32c = 0;  // of the whole block with this field zero
};
static_assert(sizeof(BlockHeader) == 64);

// Packet flags.
inline constexpr std::uint32_t kPacketKey = 1;         // the container says so
inline constexpr std::uint32_t kPacketEntry = 2;       // verified entry
inline constexpr std::uint32_t kPacketDiscard = 4;     // decoded, never shown
inline constexpr std::uint32_t kPacketSyntheticPts = 8;
inline constexpr std::uint32_t kFrameDamaged = 16;
inline constexpr std::uint32_t kFrameDuplicate = 32;   // same picture as before
inline constexpr std::uint32_t kFrameBlack = 64;

// One packet, in decode order; video and audio.
struct PacketRow {
  std::int64_t pts, dts, duration;  // in the track's time base
  std::uint32_t offset, bytes;      // in the payload
  std::uint32_t frame;              // presentation index in the track
  std::uint32_t flags;
  std::uint64_t hash;  // XXH3-64 of the decoded frame; 0 where there is none
};
static_assert(sizeof(PacketRow) == 48);

enum class EventKind : std::uint8_t {
  kKey = 1, kButton = 2, kMouseRel = 3, kMouseAbs = 4, kWheel = 5,
  kPadButton = 6, kPadAxis = 7, kText = 8,
};
enum class EventSource : std::uint8_t {
  kUnknown = 0, kHuman = 1, kInjected = 2, kInferred = 3,
};
// The row does not happen here: it says what is held when the block begins.
inline constexpr std::uint32_t kEventHeld = 1;

struct EventRow {
  std::int64_t t_ns;
  std::uint32_t usage;  // USB HID usage page << 16 | usage; 0 unknown
  std::uint32_t code;   // source code: index in the track's dictionary
  std::int32_t value, value_y;  // 1 press, 0 release; dx, dy; x, y; steps
  EventKind kind;
  EventSource source;
  std::uint16_t device;  // index in the track's device list
  std::uint32_t flags;
};
static_assert(sizeof(EventRow) == 32);

// Block flag: the first row of the table held before the block begins.
inline constexpr std::uint8_t kBlockCarried = 1;

// One row of a columnar table; the payload holds, for each column, `entries`
// 8-byte values (i64 or f64) and then `entries` validity bytes.
struct TableRow {
  std::int64_t t_ns;
  std::int64_t index;  // tick or frame number
};
static_assert(sizeof(TableRow) == 16);

// One text or span; offsets into the payload.
struct TextRow {
  std::int64_t start_ns, end_ns;  // end INT64_MAX: to the end of the capture
  std::uint32_t text_offset, text_bytes;
  std::uint32_t language_offset, language_bytes;
  std::uint32_t author_offset, author_bytes;
};
static_assert(sizeof(TextRow) == 40);

// A parsed block: views of the bytes it was parsed from.
struct BlockView {
  BlockHeader header;
  std::span<const std::uint8_t> table, payload;
  std::size_t bytes = 0;  // with padding to kBlockAlignment

  // The table as rows of one kind; the parse checked size and kind.
  std::vector<PacketRow> Packets() const;
  std::vector<EventRow> Events() const;
  std::vector<TableRow> Rows() const;
  std::vector<TextRow> Texts() const;
  // Value and validity of a column of a tick or frame table.
  std::int64_t ColumnBits(std::size_t column, std::size_t row) const;
  bool ColumnValid(std::size_t column, std::size_t row) const;
  std::size_t ColumnCount() const;
};

// The bytes of a block, padded with zeros to kBlockAlignment. `header` gives
// kind, flags, capture, track, sequence, part; the rest is filled in.
std::vector<std::uint8_t> EncodeBlock(BlockHeader header,
                                      std::span<const std::uint8_t> table,
                                      std::uint32_t entries,
                                      std::span<const std::uint8_t> payload);

// Parses the block at the start of `bytes`, which may hold more behind it.
//
// kDataLoss: cut off, wrong magic, unknown version, sizes that do not fit,
//            checksum, rows that point outside the payload
absl::StatusOr<BlockView> ParseBlock(std::span<const std::uint8_t> bytes);

template <typename Row>
std::span<const std::uint8_t> TableBytes(const std::vector<Row>& rows) {
  return {reinterpret_cast<const std::uint8_t*>(rows.data()),
          rows.size() * sizeof(Row)};
}

}  // namespace penstock::format

#endif  // PENSTOCK_COMMON_FORMAT_BLOCK_H_
