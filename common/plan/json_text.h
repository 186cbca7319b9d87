#ifndef PENSTOCK_COMMON_PLAN_JSON_TEXT_H_
#define PENSTOCK_COMMON_PLAN_JSON_TEXT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// Canonical JSON: compact, keys sorted by their bytes, integers only, text as
// UTF-8 with the shortest escapes.
namespace penstock::plan {

std::string JsonString(std::string_view text);
std::string JsonList(const std::vector<std::string>& rendered);
std::string JsonStrings(const std::vector<std::string>& texts);

// Collects fields; the text comes out sorted.
class JsonObject {
 public:
  JsonObject& Text(const char* key, std::string_view value);
  JsonObject& Number(const char* key, std::uint64_t value);
  // `value` is JSON already.
  JsonObject& Json(const char* key, std::string value);
  std::string Render() const;

 private:
  std::map<std::string, std::string> fields_;
};

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_JSON_TEXT_H_
