#include "common/format/block.h"

#include <cstring>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/status/status.h"

namespace penstock::format {
namespace {

std::size_t RowBytes(TrackKind kind) {
  switch (kind) {
    case TrackKind::kVideo:
    case TrackKind::kAudio:
      return sizeof(PacketRow);
    case TrackKind::kEvents:
      return sizeof(EventRow);
    case TrackKind::kTicks:
    case TrackKind::kFrames:
      return sizeof(TableRow);
    case TrackKind::kText:
    case TrackKind::kSpans:
      return sizeof(TextRow);
  }
  return 0;
}

template <typename Row>
std::vector<Row> CopyRows(std::span<const std::uint8_t> table) {
  std::vector<Row> rows(table.size() / sizeof(Row));
  if (!rows.empty()) {
    std::memcpy(rows.data(), table.data(), rows.size() * sizeof(Row));
  }
  return rows;
}

std::uint32_t BlockCrc(std::span<const std::uint8_t> block) {
  constexpr std::size_t kAt = offsetof(BlockHeader, crc32c);
  const std::uint8_t zeros[4] = {};
  auto crc = hash::Crc32c(block.first(kAt));
  crc = hash::Crc32c(zeros, crc);
  return hash::Crc32c(block.subspan(kAt + 4), crc);
}

absl::Status Bad(std::string what, std::string found, std::string expected) {
  return MakeError(absl::StatusCode::kDataLoss,
                   {.where = "block",
                    .what = std::move(what),
                    .found = std::move(found),
                    .expected = std::move(expected),
                    .action = "copy the dataset again from its origin; `penstock "
                              "verify` finds all that is damaged"});
}

bool Inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

// Rows that point into the payload must stay inside it.
absl::Status CheckRows(const BlockView& b) {
  const std::uint64_t size = b.payload.size();
  switch (b.header.kind) {
    case TrackKind::kVideo:
    case TrackKind::kAudio: {
      for (const auto& p : b.Packets()) {
        if (!Inside(p.offset, p.bytes, size)) {
          return Bad("a packet lies outside the payload",
                     absl::StrFormat("bytes %d+%d", p.offset, p.bytes),
                     absl::StrFormat("at most %d", size));
        }
      }
      return absl::OkStatus();
    }
    case TrackKind::kText:
    case TrackKind::kSpans: {
      for (const auto& t : b.Texts()) {
        if (!Inside(t.text_offset, t.text_bytes, size) ||
            !Inside(t.language_offset, t.language_bytes, size) ||
            !Inside(t.author_offset, t.author_bytes, size)) {
          return Bad("a text lies outside the payload", "", "");
        }
      }
      return absl::OkStatus();
    }
    case TrackKind::kTicks:
    case TrackKind::kFrames: {
      const std::uint64_t column = 9ull * b.header.entries;
      if (column == 0 ? size != 0 : size % column != 0) {
        return Bad("the payload is not whole columns",
                   absl::StrFormat("%d bytes", size),
                   absl::StrFormat("a multiple of %d", column));
      }
      return absl::OkStatus();
    }
    case TrackKind::kEvents:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<PacketRow> BlockView::Packets() const {
  return CopyRows<PacketRow>(table);
}
std::vector<EventRow> BlockView::Events() const {
  return CopyRows<EventRow>(table);
}
std::vector<TableRow> BlockView::Rows() const {
  return CopyRows<TableRow>(table);
}
std::vector<TextRow> BlockView::Texts() const {
  return CopyRows<TextRow>(table);
}

std::size_t BlockView::ColumnCount() const {
  return header.entries == 0 ? 0 : payload.size() / (9ull * header.entries);
}

std::int64_t BlockView::ColumnBits(std::size_t column, std::size_t row) const {
  std::int64_t v;
  std::memcpy(&v, payload.data() + column * 9 * header.entries + row * 8, 8);
  return v;
}

bool BlockView::ColumnValid(std::size_t column, std::size_t row) const {
  return payload[column * 9 * header.entries + 8ull * header.entries + row] != 0;
}

std::vector<std::uint8_t> EncodeBlock(BlockHeader header,
                                      std::span<const std::uint8_t> table,
                                      std::uint32_t entries,
                                      std::span<const std::uint8_t> payload) {
  header.entries = entries;
  header.table_bytes = static_cast<std::uint32_t>(table.size());
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.crc32c = 0;
  const std::size_t bytes = sizeof(header) + table.size() + payload.size();
  std::vector<std::uint8_t> out(
      (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment, 0);
  std::memcpy(out.data(), &header, sizeof(header));
  if (!table.empty()) {
    std::memcpy(out.data() + sizeof(header), table.data(), table.size());
  }
  if (!payload.empty()) {
    std::memcpy(out.data() + sizeof(header) + table.size(), payload.data(),
                payload.size());
  }
  const std::uint32_t crc = BlockCrc(out);  // the padding too
  std::memcpy(out.data() + offsetof(BlockHeader, crc32c), &crc, 4);
  return out;
}

absl::StatusOr<BlockView> ParseBlock(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < sizeof(BlockHeader)) {
    return Bad("cut off in the header", absl::StrFormat("%d bytes", bytes.size()),
               absl::StrFormat("at least %d", sizeof(BlockHeader)));
  }
  BlockView b;
  std::memcpy(&b.header, bytes.data(), sizeof(BlockHeader));
  const BlockHeader& h = b.header;
  if (h.magic != kBlockMagic) {
    return Bad("no block starts here", absl::StrFormat("magic %08x", h.magic),
               absl::StrFormat("%08x", kBlockMagic));
  }
  const std::size_t row = RowBytes(h.kind);
  const std::uint64_t used =
      sizeof(BlockHeader) + std::uint64_t{h.table_bytes} + h.payload_bytes;
  const std::uint64_t total =
      (used + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  if (total > kBlockBytesMax || total > bytes.size()) {
    return Bad("sizes do not fit", absl::StrFormat("%d bytes", total),
               absl::StrFormat("at most %d and %d left here", kBlockBytesMax,
                               bytes.size()));
  }
  if (BlockCrc(bytes.first(total)) != h.crc32c) {
    return Bad("checksum differs",
               absl::StrFormat("crc32c %08x", BlockCrc(bytes.first(total))),
               absl::StrFormat("%08x", h.crc32c));
  }
  if (h.version != kBlockVersion) {
    return Bad("unknown version", absl::StrFormat("%d", h.version),
               absl::StrFormat("%d; read it with a newer penstock",
                               kBlockVersion));
  }
  if (row == 0 || h.table_bytes != std::uint64_t{h.entries} * row) {
    return Bad("table size does not match its rows",
               absl::StrFormat("%d bytes for %d rows", h.table_bytes, h.entries),
               absl::StrFormat("%d a row", row));
  }
  b.table = bytes.subspan(sizeof(BlockHeader), h.table_bytes);
  b.payload = bytes.subspan(sizeof(BlockHeader) + h.table_bytes, h.payload_bytes);
  b.bytes = total;
  PENSTOCK_RETURN_IF_ERROR(CheckRows(b));
  return b;
}

}  // namespace penstock::format
