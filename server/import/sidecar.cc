#include "server/import/sidecar.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/format/timing.h"
#include "common/status/nearest_name.h"
#include "common/status/status.h"

namespace penstock::import {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLineBytesMax = 1 << 20;

absl::Status BadLine(const std::string& path, std::uint64_t line,
                     std::string what, std::string found,
                     std::string expected) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = absl::StrFormat("%s:%d", path, line),
                    .what = std::move(what),
                    .found = std::move(found),
                    .expected = std::move(expected),
                    .action = "correct the sidecar or its mapping in "
                              "capture.json"});
}

absl::Status ForEachLine(
    const std::string& path,
    const std::function<absl::Status(std::uint64_t, const Json&)>& each) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return MakeError(absl::StatusCode::kNotFound,
                     {.where = path,
                      .what = "cannot be read",
                      .found = std::string(std::strerror(errno)),
                      .expected = "a readable file of JSON lines",
                      .action = "correct \"file\" in capture.json"});
  }
  std::string text;
  for (std::uint64_t line = 1; std::getline(in, text); ++line) {
    if (!text.empty() && text.back() == '\r') text.pop_back();
    if (text.empty()) continue;
    if (text.size() > kLineBytesMax) {
      return BadLine(path, line, "the line is too long",
                     absl::StrFormat("%d bytes", text.size()), "at most 1 MiB");
    }
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) {
      return BadLine(path, line, "is not a JSON object", text.substr(0, 60),
                     "{…} on one line");
    }
    PENSTOCK_RETURN_IF_ERROR(each(line, json));
  }
  return absl::OkStatus();
}

// Gives texts small numbers in order of first appearance.
class Dictionary {
 public:
  explicit Dictionary(std::vector<std::string>& names) : names_(names) {}
  std::uint32_t Of(const std::string& name) {
    auto [it, added] =
        index_.emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (added) names_.push_back(name);
    return it->second;
  }

 private:
  std::vector<std::string>& names_;
  std::unordered_map<std::string, std::uint32_t> index_;
};

// Times stay far from the ends of their type: 73 years either way.
constexpr std::int64_t kTimeMax = std::int64_t{1} << 61;

bool InRange(std::int64_t ns) { return ns >= -kTimeMax && ns <= kTimeMax; }

bool ReadTime(const Json& json, const Clock& clock, std::int64_t& out) {
  auto it = json.find(clock.field);
  if (it == json.end() || !it->is_number()) return false;
  if (it->is_number_integer()) {
    if (it->is_number_unsigned() && it->get<std::uint64_t>() > INT64_MAX) {
      return false;
    }
    const auto v = it->get<std::int64_t>();
    std::int64_t ns;
    return !__builtin_mul_overflow(v, clock.unit_ns, &ns) &&
           !__builtin_add_overflow(ns, clock.offset_ns, &out) && InRange(out);
  }
  const double ns = it->get<double>() * static_cast<double>(clock.unit_ns);
  if (!(std::abs(ns) < 4e18)) return false;
  out = std::llround(ns) + clock.offset_ns;
  return InRange(out);
}

bool ReadInt32(const Json& json, const char* name, std::int32_t& out) {
  auto it = json.find(name);
  if (it == json.end() || !it->is_number()) return false;
  const double v = it->get<double>();
  if (!(v >= INT32_MIN && v <= INT32_MAX) || v != std::floor(v)) return false;
  out = static_cast<std::int32_t>(v);
  return true;
}

struct KindName {
  const char* name;
  format::EventKind kind;
  const char* first;   // field of value
  const char* second;  // field of value_y
};
constexpr KindName kKinds[] = {
    {"key", format::EventKind::kKey, "value", nullptr},
    {"button", format::EventKind::kButton, "value", nullptr},
    {"mouse_rel", format::EventKind::kMouseRel, "dx", "dy"},
    {"mouse_abs", format::EventKind::kMouseAbs, "x", "y"},
    {"wheel", format::EventKind::kWheel, "value", nullptr},
    {"pad_button", format::EventKind::kPadButton, "value", nullptr},
    {"pad_axis", format::EventKind::kPadAxis, "value", nullptr},
};

format::EventSource SourceOf(const std::string& name) {
  if (name == "human") return format::EventSource::kHuman;
  if (name == "injected") return format::EventSource::kInjected;
  if (name == "inferred") return format::EventSource::kInferred;
  return format::EventSource::kUnknown;
}

absl::Status ReadHeld(const std::string& path, std::uint64_t line,
                      const Json& held, format::EventSource source,
                      Dictionary& codes, EventTable& out) {
  if (!held.is_array()) {
    return BadLine(path, line, "held_at_start must be a list", held.dump(),
                   "USB HID usages or codes");
  }
  for (const Json& h : held) {
    format::EventRow row{};
    row.kind = format::EventKind::kKey;
    row.source = source;
    row.value = 1;
    row.flags = format::kEventHeld;
    if (h.is_number_unsigned()) {
      row.usage = h.get<std::uint32_t>();  // its code comes from later rows
    } else if (h.is_string()) {
      row.code = codes.Of(h.get<std::string>());
    } else {
      return BadLine(path, line, "held_at_start lists something else", h.dump(),
                     "USB HID usages or codes");
    }
    out.held_at_start.push_back(row);
  }
  return absl::OkStatus();
}

// What is held by usage is the input that later rows of that usage are: the
// same kind, device and code, so that its release is found.
void NameHeld(EventTable& table, Dictionary& codes) {
  for (format::EventRow& held : table.held_at_start) {
    const auto it = std::find_if(
        table.rows.begin(), table.rows.end(), [&](const format::EventRow& row) {
          return held.usage != 0 ? row.usage == held.usage
                                 : row.code == held.code;
        });
    if (it != table.rows.end()) {
      held.kind = it->kind;
      held.device = it->device;
      held.code = it->code;
      held.usage = it->usage;
    } else if (held.usage != 0) {
      held.code = codes.Of(absl::StrFormat("usage:%08x", held.usage));
    }
  }
}

}  // namespace

absl::StatusOr<EventTable> ReadEvents(const std::string& path,
                                      const SidecarMapping& mapping) {
  EventTable table;
  Dictionary codes(table.codes), devices(table.devices);
  const format::EventSource source = SourceOf(mapping.source);
  auto each = [&](std::uint64_t line, const Json& json) -> absl::Status {
    if (auto it = json.find("held_at_start"); it != json.end()) {
      return ReadHeld(path, line, *it, source, codes, table);
    }
    format::EventRow row{};
    if (!ReadTime(json, mapping.clock, row.t_ns)) {
      return BadLine(path, line, "no time in field \"" + mapping.clock.field +
                                     "\"",
                     json.dump().substr(0, 80), "a time within 2^61 ns");
    }
    const std::string kind = json.value("kind", "");
    const auto* k = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](const KindName& n) { return kind == n.name; });
    if (k == std::end(kKinds)) {
      return BadLine(path, line, "unknown kind of event", "\"" + kind + "\"",
                     "key, button, mouse_rel, mouse_abs, wheel, pad_button or "
                     "pad_axis");
    }
    row.kind = k->kind;
    if (!ReadInt32(json, k->first, row.value) ||
        (k->second != nullptr && !ReadInt32(json, k->second, row.value_y))) {
      return BadLine(path, line, "the value is missing or no integer",
                     json.dump().substr(0, 80),
                     k->second ? absl::StrFormat("\"%s\" and \"%s\"", k->first,
                                                 k->second)
                               : absl::StrFormat("\"%s\"", k->first));
    }
    if (auto it = json.find("usage");
        it != json.end() && it->is_number_unsigned()) {
      row.usage = it->get<std::uint32_t>();
    }
    auto code = json.find("code");
    row.code = codes.Of(code == json.end() ? std::string(k->name)
                        : code->is_string() ? code->get<std::string>()
                                            : code->dump());
    row.device = static_cast<std::uint16_t>(
        std::min<std::uint32_t>(devices.Of(json.value("device", "")), 0xFFFF));
    row.source = source;
    table.rows.push_back(row);
    return absl::OkStatus();
  };
  try {
    PENSTOCK_RETURN_IF_ERROR(ForEachLine(path, each));
  } catch (const Json::exception& e) {  // a field of an unexpected type
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = path,
                      .what = "a field has the wrong type",
                      .found = e.what(),
                      .expected = "the types that capture.json declares",
                      .action = "correct the row or capture.json"});
  }
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const auto& a, const auto& b) { return a.t_ns < b.t_ns; });
  NameHeld(table, codes);
  return table;
}

absl::StatusOr<ColumnTable> ReadColumns(const std::string& path,
                                        const SidecarMapping& mapping) {
  ColumnTable table;
  table.values.resize(mapping.columns.size());
  table.valid.resize(mapping.columns.size());
  const bool frames = mapping.kind == format::TrackKind::kFrames;
  std::vector<std::string> fields;  // of the first row
  std::vector<bool> seen(mapping.columns.size());
  auto each = [&](std::uint64_t line, const Json& json) -> absl::Status {
    format::TableRow row{};
    row.index = static_cast<std::int64_t>(table.rows.size());
    if (!frames) row.index += mapping.first_index;
    if (!mapping.index_field.empty()) {
      auto it = json.find(mapping.index_field);
      if (it == json.end() || !it->is_number_integer()) {
        return BadLine(path, line,
                       "no integer in field \"" + mapping.index_field + "\"",
                       json.dump().substr(0, 80), "the row's number");
      }
      const auto index = it->get<std::int64_t>();
      if (frames && index != row.index) {
        return BadLine(path, line, "frames are not numbered one by one",
                       std::to_string(index), std::to_string(row.index));
      }
      row.index = index;
    }
    if (!mapping.clock.field.empty()) {
      if (!ReadTime(json, mapping.clock, row.t_ns)) {
        return BadLine(path, line,
                       "no time in field \"" + mapping.clock.field + "\"",
                       json.dump().substr(0, 80), "a time within 2^61 ns");
      }
    } else if (!frames) {
      std::int64_t ticks;
      if (__builtin_sub_overflow(row.index, mapping.first_index, &ticks) ||
          __builtin_add_overflow(
              mapping.first_ns,
              format::PtsToNs(ticks, mapping.rate_den, mapping.rate_num),
              &row.t_ns) ||
          !InRange(row.t_ns)) {
        return BadLine(path, line, "the tick lies out of range",
                       std::to_string(row.index), "a time within 2^61 ns");
      }
      if (!table.rows.empty() && row.index == table.rows.back().index) {
        return BadLine(path, line, "the tick is given twice",
                       std::to_string(row.index),
                       "one row for each tick, in order");
      }
    }
    if (!table.rows.empty() && !frames && row.t_ns < table.rows.back().t_ns) {
      return BadLine(path, line, "time goes backwards",
                     absl::StrFormat("%d ns", row.t_ns),
                     absl::StrFormat("at least %d", table.rows.back().t_ns));
    }
    table.rows.push_back(row);
    if (table.rows.size() == 1) {
      for (const auto& [name, value] : json.items()) fields.push_back(name);
    }
    for (std::size_t c = 0; c < mapping.columns.size(); ++c) {
      const Column& column = mapping.columns[c];
      auto it = json.find(column.name);
      std::int64_t bits = 0;
      const bool known = it != json.end() && !it->is_null();
      seen[c] = seen[c] || it != json.end();
      if (known && it->is_boolean()) {
        const bool v = it->get<bool>();
        bits = column.floating ? std::bit_cast<std::int64_t>(v ? 1.0 : 0.0) : v;
      } else if (known && column.floating && it->is_number()) {
        bits = std::bit_cast<std::int64_t>(it->get<double>());
      } else if (known && !column.floating && it->is_number_integer()) {
        bits = it->get<std::int64_t>();
      } else if (known) {
        return BadLine(path, line, "column \"" + column.name + "\"",
                       it->dump().substr(0, 60),
                       column.floating ? "a number" : "an integer");
      }
      table.values[c].push_back(bits);
      table.valid[c].push_back(known ? 1 : 0);
    }
    return absl::OkStatus();
  };
  PENSTOCK_RETURN_IF_ERROR(ForEachLine(path, each));
  for (std::size_t c = 0; c < seen.size() && !table.rows.empty(); ++c) {
    if (seen[c]) continue;
    const std::string near = NearestName(mapping.columns[c].name, fields);
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = path,
         .what = "no row has the column \"" + mapping.columns[c].name + "\"",
         .found = absl::StrJoin(fields, ", ").substr(0, 200),
         .expected = near.empty() ? "one of these" : "\"" + near + "\"?",
         .action = "correct the sidecar or its mapping in capture.json"});
  }
  return table;
}

}  // namespace penstock::import
