#include "server/import/mapping.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status/nearest_name.h"
#include "common/status/status.h"

namespace penstock::import {
namespace {

using Json = nlohmann::json;

// Reads fields of one JSON object and remembers the first fault.
class Fields {
 public:
  Fields(const Json& json, std::string where,
         std::initializer_list<const char*> known)
      : json_(json), where_(std::move(where)), known_(known) {
    if (!json.is_object()) {
      Fail("", "must be an object", json.type_name(), "{…}");
      return;
    }
    for (const auto& [name, value] : json.items()) CheckKnown(name);
  }

  std::string Text(const char* name, std::string fallback = "") {
    const Json* v = Find(name);
    if (v == nullptr) return fallback;
    if (!v->is_string()) {
      Fail(name, "must be a text", v->type_name(), "\"…\"");
      return fallback;
    }
    return v->get<std::string>();
  }
  std::string Required(const char* name) {
    std::string text = Text(name);
    if (text.empty()) Fail(name, "is missing or empty", "nothing", "a text");
    return text;
  }
  std::int64_t Integer(const char* name, std::int64_t fallback) {
    const Json* v = Find(name);
    if (v == nullptr || v->is_null()) return fallback;
    if (!v->is_number_integer()) {
      Fail(name, "must be an integer", v->dump(), "for example 0");
      return fallback;
    }
    // Times and counts stay far from the ends of their type.
    constexpr std::int64_t kMax = std::int64_t{1} << 61;
    const auto value = v->get<std::int64_t>();
    if ((v->is_number_unsigned() && v->get<std::uint64_t>() > kMax) ||
        value > kMax || value < -kMax) {
      Fail(name, "is out of range", v->dump(), "at most 2^61 either way");
      return fallback;
    }
    return value;
  }
  // The list of that name; empty when it is not there or no list.
  const Json& List(const char* name) {
    static const Json kNone = Json::array();
    const Json* v = Find(name);
    if (v == nullptr) return kNone;
    if (!v->is_array()) {
      Fail(name, "must be a list", v->type_name(), "[…]");
      return kNone;
    }
    return *v;
  }
  const Json* Find(const char* name) const {
    if (!json_.is_object()) return nullptr;
    auto it = json_.find(name);
    return it == json_.end() ? nullptr : &*it;
  }
  void Fail(const std::string& field, std::string what, std::string found,
            std::string expected) {
    if (!status_.ok()) return;
    status_ = MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = where_ + (field.empty() ? "" : "." + field),
         .what = std::move(what),
         .found = std::move(found),
         .expected = std::move(expected),
         .action = "correct the file; `penstock import --dry-run` shows what "
                   "is understood"});
  }
  const absl::Status& status() const { return status_; }
  const std::string& where() const { return where_; }

 private:
  void CheckKnown(const std::string& name) {
    for (const char* k : known_) {
      if (name == k) return;
    }
    const std::string near = NearestName(
        name, std::vector<std::string>(known_.begin(), known_.end()));
    Fail(name, "unknown field",
         "\"" + name + "\"",
         near.empty() ? absl::StrJoin(known_, ", ") : "\"" + near + "\"?");
  }

  const Json& json_;
  std::string where_;
  std::vector<const char*> known_;
  absl::Status status_;
};

absl::StatusOr<std::int64_t> UnitNs(const std::string& unit,
                                    const std::string& where) {
  if (unit == "ns" || unit.empty()) return 1;
  if (unit == "us") return 1'000;
  if (unit == "ms") return 1'000'000;
  if (unit == "s") return 1'000'000'000;
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = where + ".unit",
                    .what = "unknown unit of time",
                    .found = unit,
                    .expected = "ns, us, ms or s",
                    .action = "correct the unit in capture.json"});
}

absl::Status ReadClock(const Json& json, const std::string& where, Clock& out) {
  Fields f(json, where, {"field", "unit", "zero", "offset_ns"});
  out.field = f.Required("field");
  out.offset_ns = f.Integer("offset_ns", 0);
  const std::string zero = f.Text("zero", "first_frame");
  if (zero != "first_frame") {
    f.Fail("zero", "unknown zero of the clock", zero,
           "first_frame, with offset_ns for another zero");
  }
  const std::string unit = f.Text("unit");
  PENSTOCK_RETURN_IF_ERROR(f.status());
  PENSTOCK_ASSIGN_OR_RETURN(out.unit_ns, UnitNs(unit, where));
  return absl::OkStatus();
}

absl::Status ReadRate(const std::string& text, const std::string& where,
                      SidecarMapping& out) {
  const auto slash = text.find('/');
  std::uint64_t num = 0, den = 1;
  if (!absl::SimpleAtoi(text.substr(0, slash), &num) ||
      (slash != std::string::npos &&
       !absl::SimpleAtoi(text.substr(slash + 1), &den)) ||
      num == 0 || den == 0 || num > 1'000'000'000 || den > 1'000'000'000) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = where + ".tick_rate",
                      .what = "not a rate",
                      .found = "\"" + text + "\"",
                      .expected = "ticks a second, as \"35\" or \"30000/1001\"",
                      .action = "correct the rate in capture.json"});
  }
  out.rate_num = num;
  out.rate_den = den;
  return absl::OkStatus();
}

absl::Status ReadColumns(const Json& json, const std::string& where,
                         std::vector<Column>& out) {
  if (!json.is_array() || json.empty() || json.size() > 1024) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = where,
                      .what = "must be a list of 1 to 1024 columns",
                      .found = json.type_name(),
                      .expected = "a list of objects with name and type",
                      .action = "correct the columns in capture.json"});
  }
  for (std::size_t i = 0; i < json.size(); ++i) {
    Fields f(json[i], absl::StrFormat("%s[%d]", where, i),
             {"name", "type", "unit"});
    Column c;
    c.name = f.Required("name");
    c.unit = f.Text("unit");
    const std::string type = f.Text("type", "f64");
    c.floating = type == "f64";
    if (type != "f64" && type != "i64") {
      f.Fail("type", "unknown type", type, "i64 or f64");
    }
    for (const Column& other : out) {
      if (other.name == c.name) f.Fail("name", "twice", c.name, "one column");
    }
    PENSTOCK_RETURN_IF_ERROR(f.status());
    out.push_back(std::move(c));
  }
  return absl::OkStatus();
}

absl::StatusOr<SidecarMapping> ReadSidecar(const Json& json,
                                           const std::string& where) {
  Fields f(json, where,
           {"name", "kind", "file", "clock", "source", "tick_rate",
            "tick_field", "first_tick", "first_tick_ns", "frame_field",
            "tail_max", "columns", "note"});
  SidecarMapping m;
  m.name = f.Required("name");
  m.file = f.Required("file");
  const std::string kind = f.Required("kind");
  if (m.file.find("..") != std::string::npos || m.file.starts_with('/')) {
    f.Fail("file", "leaves the capture's folder", m.file,
           "a file beside capture.json");
  }
  PENSTOCK_RETURN_IF_ERROR(f.status());
  if (const Json* clock = f.Find("clock")) {
    PENSTOCK_RETURN_IF_ERROR(ReadClock(*clock, where + ".clock", m.clock));
  }
  if (kind == "events") {
    m.kind = format::TrackKind::kEvents;
    m.source = f.Text("source", "unknown");
    if (m.clock.field.empty()) {
      f.Fail("clock", "events need a clock", "nothing",
             "{\"field\": \"t_ns\", \"unit\": \"ns\"}");
    }
    if (m.source != "human" && m.source != "injected" &&
        m.source != "inferred" && m.source != "unknown") {
      f.Fail("source", "unknown source of events", m.source,
             "human, injected, inferred or unknown");
    }
  } else if (kind == "ticks") {
    m.kind = format::TrackKind::kTicks;
    m.index_field = f.Text("tick_field");
    m.first_index = f.Integer("first_tick", 0);
    m.first_ns = f.Integer("first_tick_ns", 0);
    const std::string rate = f.Text("tick_rate");
    PENSTOCK_RETURN_IF_ERROR(f.status());
    if (m.clock.field.empty() || f.Find("tick_rate") != nullptr) {
      PENSTOCK_RETURN_IF_ERROR(ReadRate(rate, where, m));
    }
  } else if (kind == "frames") {
    m.kind = format::TrackKind::kFrames;
    m.index_field = f.Text("frame_field");
    m.tail_max = static_cast<std::uint64_t>(f.Integer("tail_max", 0));
    if (m.tail_max > 2) {
      f.Fail("tail_max", "too large", std::to_string(m.tail_max), "0, 1 or 2");
    }
  } else {
    f.Fail("kind", "unknown kind of sidecar", kind, "events, ticks or frames");
  }
  if (kind == "ticks" || kind == "frames") {
    const Json* columns = f.Find("columns");
    PENSTOCK_RETURN_IF_ERROR(ReadColumns(columns ? *columns : Json(),
                                         where + ".columns", m.columns));
  }
  PENSTOCK_RETURN_IF_ERROR(f.status());
  return m;
}

absl::StatusOr<TextMapping> ReadText(const Json& json,
                                     const std::string& where) {
  Fields f(json, where, {"start_ns", "end_ns", "language", "author", "text"});
  TextMapping t;
  t.start_ns = f.Integer("start_ns", 0);
  t.end_ns = f.Integer("end_ns", INT64_MAX);
  t.language = f.Text("language");
  t.author = f.Text("author");
  t.text = f.Required("text");
  if (t.end_ns < t.start_ns) {
    f.Fail("end_ns", "ends before it starts", std::to_string(t.end_ns),
           "at least " + std::to_string(t.start_ns));
  }
  PENSTOCK_RETURN_IF_ERROR(f.status());
  return t;
}

// JSON in which no object names a field twice: which of them counts is
// anybody's guess.
absl::StatusOr<Json> ParseStrictly(const std::string& text,
                                   const std::string& where) {
  std::vector<std::set<std::string>> keys;
  std::string twice;
  auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second && twice.empty()) twice = key;
    }
    return true;
  };
  try {
    Json json = Json::parse(text, watch);
    if (twice.empty()) return json;
  } catch (const Json::parse_error& e) {
    const auto at = std::min<std::size_t>(e.byte, text.size());
    const auto line = std::count(text.begin(), text.begin() + at, '\n') + 1;
    const std::string here = text.substr(at == 0 ? 0 : at - 1, 20);
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = absl::StrFormat("%s:%d", where, line),
                      .what = "is not JSON",
                      .found = at == text.size() ? "the end of the file"
                                                 : here.substr(0, here.find('\n')),
                      .expected = "JSON up to its closing brace",
                      .action = "check it with `python3 -m json.tool`"});
  } catch (const Json::exception& e) {  // a number that no type holds
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = where,
                      .what = "holds a value that cannot be read",
                      .found = e.what(),
                      .expected = "a value that the field's type holds",
                      .action = "correct the number"});
  }
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = where,
                    .what = "a field is given twice",
                    .found = twice,
                    .expected = "each field once in its object",
                    .action = "remove one of them"});
}

}  // namespace

absl::StatusOr<CaptureMapping> ParseMapping(const std::string& text,
                                            const std::string& where) {
  PENSTOCK_ASSIGN_OR_RETURN(const Json json, ParseStrictly(text, where));
  Fields f(json, where,
           {"penstock_capture", "title", "session", "player", "source",
            "licence", "conditions", "video", "tracks", "text", "pairing_note",
            "note"});
  if (f.Integer("penstock_capture", 0) != 1) {
    f.Fail("penstock_capture", "unknown version of capture.json",
           f.Find("penstock_capture") ? f.Find("penstock_capture")->dump()
                                      : "nothing",
           "1");
  }
  CaptureMapping m;
  m.title = f.Text("title");
  m.session = f.Text("session");
  m.player = f.Text("player");
  m.licence = f.Text("licence");
  m.origin = f.Text("source");
  PENSTOCK_RETURN_IF_ERROR(f.status());
  if (const Json* c = f.Find("conditions")) {
    Fields fc(*c, where + ".conditions", {});
    if (!c->is_object()) return fc.status();
    for (const auto& [key, value] : c->items()) {
      m.conditions.emplace_back(
          key, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  if (const Json* v = f.Find("video")) {
    Fields fv(*v, where + ".video", {"file"});
    m.video = fv.Required("file");
    PENSTOCK_RETURN_IF_ERROR(fv.status());
  }
  for (const Json& t : f.List("tracks")) {
    PENSTOCK_ASSIGN_OR_RETURN(
        auto s, ReadSidecar(t, absl::StrFormat("%s.tracks[%d]", where,
                                               m.sidecars.size())));
    for (const SidecarMapping& other : m.sidecars) {
      if (other.name == s.name) {
        f.Fail("tracks", "two tracks of one name", "\"" + s.name + "\"",
               "names that differ");
      }
    }
    m.sidecars.push_back(std::move(s));
  }
  for (const Json& t : f.List("text")) {
    PENSTOCK_ASSIGN_OR_RETURN(
        auto s,
        ReadText(t, absl::StrFormat("%s.text[%d]", where, m.texts.size())));
    m.texts.push_back(std::move(s));
  }
  PENSTOCK_RETURN_IF_ERROR(f.status());
  return m;
}

}  // namespace penstock::import
