#ifndef PENSTOCK_SERVER_IMPORT_SIDECAR_H_
#define PENSTOCK_SERVER_IMPORT_SIDECAR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/block.h"
#include "server/import/mapping.h"

namespace penstock::import {

// Input events of a capture, in time order; held_at_start are the usages or
// codes down before the first event.
struct EventTable {
  std::vector<format::EventRow> rows;
  std::vector<format::EventRow> held_at_start;
  std::vector<std::string> codes;    // EventRow::code indexes it
  std::vector<std::string> devices;  // EventRow::device indexes it
};

// A columnar table, rows in time order. values[c][r] are the bits of an i64 or
// f64; valid[c][r] is 0 where the source has no value.
struct ColumnTable {
  std::vector<format::TableRow> rows;
  std::vector<std::vector<std::int64_t>> values;
  std::vector<std::vector<std::uint8_t>> valid;
};

// Reads an event list (JSON lines). Lines out of time order are sorted, ties
// keep the order of the file.
//
// kInvalidArgument: names file, line, field
absl::StatusOr<EventTable> ReadEvents(const std::string& path,
                                      const SidecarMapping& mapping);

// Reads a per-tick or per-frame table (JSON lines). For frame tables t_ns is
// left 0: the video's frames give it.
//
// kInvalidArgument: names file, line, field
absl::StatusOr<ColumnTable> ReadColumns(const std::string& path,
                                        const SidecarMapping& mapping);

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_SIDECAR_H_
