#include "common/plan/json_text.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::plan {
namespace {

// The two-character escapes of JSON, or 0.
char ShortEscape(char c) {
  switch (c) {
    case '"':
      return '"';
    case '\\':
      return '\\';
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}

}  // namespace

std::string JsonString(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (char e = ShortEscape(c); e != 0) {
      out += {'\\', e};
    } else if (u < 0x20) {
      out += {'\\', 'u', '0', '0', kHex[u >> 4], kHex[u & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string JsonList(const std::vector<std::string>& rendered) {
  std::string out = "[";
  for (std::size_t i = 0; i < rendered.size(); ++i) {
    absl::StrAppend(&out, i == 0 ? "" : ",", rendered[i]);
  }
  return out + "]";
}

std::string JsonStrings(const std::vector<std::string>& texts) {
  std::vector<std::string> rendered;
  for (const std::string& t : texts) rendered.push_back(JsonString(t));
  return JsonList(rendered);
}

JsonObject& JsonObject::Text(const char* key, std::string_view value) {
  return Json(key, JsonString(value));
}

JsonObject& JsonObject::Number(const char* key, std::uint64_t value) {
  return Json(key, absl::StrCat(value));
}

JsonObject& JsonObject::Json(const char* key, std::string value) {
  fields_[key] = std::move(value);
  return *this;
}

std::string JsonObject::Render() const {
  std::string out = "{";
  for (const auto& [key, value] : fields_) {
    absl::StrAppend(&out, out.size() == 1 ? "" : ",", JsonString(key), ":",
                    value);
  }
  return out + "}";
}

}  // namespace penstock::plan
