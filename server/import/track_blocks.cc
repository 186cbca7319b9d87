#include "server/import/track_blocks.h"

#include <algorithm>

namespace penstock::import {
namespace {

constexpr std::size_t kSideBytesMax = 4 << 20;

// Rows of a time-sorted table inside a range, as [first, last).
template <typename Rows>
std::pair<std::size_t, std::size_t> RowsIn(const Rows& rows, TimeRange range) {
  auto before = [](const auto& row, std::int64_t t) { return row.t_ns < t; };
  const auto b =
      std::lower_bound(rows.begin(), rows.end(), range.begin_ns, before);
  const auto e = range.end_ns == INT64_MAX
                     ? rows.end()
                     : std::lower_bound(b, rows.end(), range.end_ns, before);
  return {static_cast<std::size_t>(b - rows.begin()),
          static_cast<std::size_t>(e - rows.begin())};
}

// The time range of the piece [first, last) of rows cut out of `range`.
template <typename Rows>
TimeRange PieceRange(const Rows& rows, std::size_t first, std::size_t last,
                     std::size_t begin, std::size_t end, TimeRange range) {
  TimeRange piece = range;
  if (first != begin) piece.begin_ns = rows[first].t_ns;
  if (last != end) piece.end_ns = rows[last - 1].t_ns + 1;
  return piece;
}

}  // namespace

HeldInputs::HeldInputs(const EventTable& table) : table_(table) {
  for (const auto& row : table.held_at_start) Apply(row);
}

void HeldInputs::Apply(const format::EventRow& row) {
  if (row.kind != format::EventKind::kKey &&
      row.kind != format::EventKind::kButton &&
      row.kind != format::EventKind::kPadButton) {
    return;
  }
  const Key key{row.kind, row.device, row.code};
  if (row.value == 0) {
    held_.erase(key);
  } else {
    held_[key] = row;
    held_[key].flags |= format::kEventHeld;
  }
}

std::vector<format::EventRow> HeldInputs::Before(std::size_t end) {
  for (; applied_ < end; ++applied_) Apply(table_.rows[applied_]);
  std::vector<format::EventRow> rows;
  for (const auto& [key, row] : held_) rows.push_back(row);
  return rows;
}

std::vector<TrackBlock> EventBlocks(const EventTable& table, HeldInputs& held,
                                    TimeRange range,
                                    format::BlockHeader header) {
  const std::size_t step = kSideBytesMax / sizeof(format::EventRow);
  const auto [begin, end] = RowsIn(table.rows, range);
  std::vector<TrackBlock> blocks;
  header.kind = format::TrackKind::kEvents;
  for (std::size_t first = begin; first == begin || first < end;) {
    const std::size_t last = std::min(first + step, end);
    std::vector<format::EventRow> rows = held.Before(first);
    rows.insert(rows.end(), table.rows.begin() + first,
                table.rows.begin() + last);
    const TimeRange piece =
        PieceRange(table.rows, first, last, begin, end, range);
    blocks.push_back({format::EncodeBlock(header, format::TableBytes(rows),
                                          static_cast<std::uint32_t>(rows.size()),
                                          {}),
                      static_cast<std::uint32_t>(last - first), piece.begin_ns,
                      piece.end_ns});
    ++header.sequence;
    first = std::max(last, first + 1);
  }
  return blocks;
}

std::vector<TrackBlock> ColumnBlocks(const ColumnTable& table, TimeRange range,
                                     format::BlockHeader header) {
  const std::size_t row_bytes =
      sizeof(format::TableRow) + 9 * table.values.size();
  const std::size_t step = std::max<std::size_t>(kSideBytesMax / row_bytes, 1);
  const auto [begin, end] = RowsIn(table.rows, range);
  std::vector<TrackBlock> blocks;
  for (std::size_t first = begin; first == begin || first < end;) {
    const std::size_t last = std::min(first + step, end);
    // The row that still holds when the range begins comes along.
    const std::size_t from = first > 0 ? first - 1 : first;
    header.flags = from != first ? format::kBlockCarried : 0;
    std::vector<format::TableRow> rows(table.rows.begin() + from,
                                       table.rows.begin() + last);
    std::vector<std::uint8_t> payload;
    for (std::size_t c = 0; c < table.values.size(); ++c) {
      const auto* v = reinterpret_cast<const std::uint8_t*>(
          table.values[c].data() + from);
      payload.insert(payload.end(), v, v + 8 * (last - from));
      payload.insert(payload.end(), table.valid[c].begin() + from,
                     table.valid[c].begin() + last);
    }
    const TimeRange piece =
        PieceRange(table.rows, first, last, begin, end, range);
    blocks.push_back({format::EncodeBlock(header, format::TableBytes(rows),
                                          static_cast<std::uint32_t>(rows.size()),
                                          payload),
                      static_cast<std::uint32_t>(last - first), piece.begin_ns,
                      piece.end_ns});
    ++header.sequence;
    first = std::max(last, first + 1);
  }
  return blocks;
}

std::vector<TrackBlock> AudioBlocks(const IngestedCapture& capture,
                                    const IngestedAudio& audio,
                                    std::span<const std::uint8_t> spool,
                                    TimeRange range,
                                    format::BlockHeader header) {
  std::vector<TrackBlock> blocks;
  header.kind = format::TrackKind::kAudio;
  std::vector<format::PacketRow> rows;
  std::vector<std::uint8_t> payload;
  std::int64_t first_ns = 0, end_ns = 0;
  auto flush = [&] {
    if (rows.empty()) return;
    blocks.push_back({format::EncodeBlock(header, format::TableBytes(rows),
                                          static_cast<std::uint32_t>(rows.size()),
                                          payload),
                      static_cast<std::uint32_t>(rows.size()), first_ns,
                      end_ns});
    ++header.sequence;
    rows.clear();
    payload.clear();
  };
  for (std::size_t i = 0; i < audio.packets.size(); ++i) {
    format::PacketRow row = audio.packets[i];
    const std::int64_t pts = row.pts == format::kNoPts ? 0 : row.pts;
    const std::int64_t t = CaptureNs(capture, audio.stream, pts);
    if (t < range.begin_ns || (t >= range.end_ns && range.end_ns != INT64_MAX)) {
      continue;
    }
    if (payload.size() + row.bytes > kSideBytesMax) flush();
    if (rows.empty()) first_ns = t;
    end_ns = CaptureNs(capture, audio.stream, pts + row.duration);
    row.offset = static_cast<std::uint32_t>(payload.size());
    const auto bytes = spool.subspan(audio.spool_offset[i], row.bytes);
    payload.insert(payload.end(), bytes.begin(), bytes.end());
    rows.push_back(row);
  }
  flush();
  return blocks;
}

std::vector<TrackBlock> TextBlocks(const std::vector<TextMapping>& texts,
                                   TimeRange range,
                                   format::BlockHeader header) {
  std::vector<format::TextRow> rows;
  std::vector<std::uint8_t> payload;
  std::int64_t first_ns = INT64_MAX, end_ns = INT64_MIN;
  auto put = [&](const std::string& text, std::uint32_t& offset,
                 std::uint32_t& bytes) {
    offset = static_cast<std::uint32_t>(payload.size());
    bytes = static_cast<std::uint32_t>(text.size());
    payload.insert(payload.end(), text.begin(), text.end());
  };
  for (const TextMapping& t : texts) {
    if (t.start_ns < range.begin_ns ||
        (t.start_ns >= range.end_ns && range.end_ns != INT64_MAX)) {
      continue;
    }
    format::TextRow row{};
    row.start_ns = t.start_ns;
    row.end_ns = t.end_ns;
    put(t.text, row.text_offset, row.text_bytes);
    put(t.language, row.language_offset, row.language_bytes);
    put(t.author, row.author_offset, row.author_bytes);
    rows.push_back(row);
    first_ns = std::min(first_ns, t.start_ns);
    end_ns = std::max(end_ns, t.end_ns);
  }
  if (rows.empty()) return {};
  std::vector<TrackBlock> blocks;
  blocks.push_back({format::EncodeBlock(header, format::TableBytes(rows),
                                        static_cast<std::uint32_t>(rows.size()),
                                        payload),
                    static_cast<std::uint32_t>(rows.size()), first_ns, end_ns});
  return blocks;
}

std::vector<std::vector<std::uint8_t>> GopBlocks(
    const IngestedVideo& video, const GopPlan& gop,
    std::span<const std::uint8_t> spool, format::BlockHeader header) {
  header.kind = format::TrackKind::kVideo;
  struct Part {
    std::uint32_t first, end;
  };
  std::vector<Part> parts;
  std::size_t size = 0;
  for (std::uint32_t p = gop.first_packet; p < gop.end_packet; ++p) {
    const std::size_t bytes = video.packets[p].bytes + sizeof(format::PacketRow);
    if (parts.empty() ||
        size + bytes > format::kBlockBytesMax - 2 * format::kBlockAlignment) {
      parts.push_back({p, p});
      size = 0;
    }
    size += bytes;
    parts.back().end = p + 1;
  }
  std::vector<std::vector<std::uint8_t>> blocks;
  header.part_count = static_cast<std::uint16_t>(parts.size());
  for (const Part& part : parts) {
    std::vector<format::PacketRow> rows(video.packets.begin() + part.first,
                                        video.packets.begin() + part.end);
    std::vector<std::uint8_t> payload;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].offset = static_cast<std::uint32_t>(payload.size());
      const auto bytes =
          spool.subspan(video.spool_offset[part.first + i], rows[i].bytes);
      payload.insert(payload.end(), bytes.begin(), bytes.end());
    }
    header.part = static_cast<std::uint16_t>(blocks.size());
    blocks.push_back(format::EncodeBlock(
        header, format::TableBytes(rows),
        static_cast<std::uint32_t>(rows.size()), payload));
  }
  return blocks;
}

}  // namespace penstock::import
