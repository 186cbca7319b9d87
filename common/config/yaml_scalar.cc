#include "common/config/yaml_scalar.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::config {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr char kUnspecified[] = "UNSPECIFIED";

template <typename T>
std::optional<T> Number(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || at != end) return std::nullopt;
  return value;
}

std::optional<double> Real(const std::string& text) {
  auto v = Number<double>(text);
  return v && std::isfinite(*v) ? v : std::nullopt;
}

std::optional<bool> Truth(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

// "SHUFFLE" of ORDER_SHUFFLE: the prefix is that of the zero value.
std::string YamlName(const EnumDescriptor& e, int i) {
  std::string prefix = e.value(0)->name();
  const std::size_t at = prefix.rfind(kUnspecified);
  prefix.resize(at == std::string::npos ? 0 : at);
  std::string name = e.value(i)->name();
  if (name.compare(0, prefix.size(), prefix) == 0) name.erase(0, prefix.size());
  return absl::AsciiStrToLower(name);
}

std::optional<int> EnumNumber(const EnumDescriptor& e,
                              const std::string& text) {
  for (int i = 0; i < e.value_count(); ++i) {
    if (YamlName(e, i) != text || text == "unspecified") continue;
    return e.value(i)->number();
  }
  return std::nullopt;
}

// Calls set(value) for a value there is.
template <typename T, typename F>
bool With(const std::optional<T>& value, F set) {
  if (value) set(*value);
  return value.has_value();
}

template <typename T>
std::string WholeNumber() {
  return absl::StrCat("a whole number from ", std::numeric_limits<T>::min(),
                      " to ", std::numeric_limits<T>::max());
}

}  // namespace

std::vector<std::string> EnumNames(const EnumDescriptor& e) {
  std::vector<std::string> names;
  for (int i = 0; i < e.value_count(); ++i) {
    if (auto name = YamlName(e, i); name != "unspecified")
      names.push_back(name);
  }
  return names;
}

std::string Expects(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return WholeNumber<std::int32_t>();
    case FieldDescriptor::CPPTYPE_UINT32:
      return WholeNumber<std::uint32_t>();
    case FieldDescriptor::CPPTYPE_INT64:
      return WholeNumber<std::int64_t>();
    case FieldDescriptor::CPPTYPE_UINT64:
      return WholeNumber<std::uint64_t>();
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrJoin(EnumNames(*field.enum_type()), ", ");
    case FieldDescriptor::CPPTYPE_STRING:
      return "a text";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "fields (name: value)";
  }
  return "";
}

bool PutScalar(const std::string& text, const FieldDescriptor& field,
               Message* message) {
  const Reflection& r = *message->GetReflection();
  const bool many = field.is_repeated();
  const FieldDescriptor* f = &field;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return With(Number<std::int32_t>(text), [&](auto v) {
        many ? r.AddInt32(message, f, v) : r.SetInt32(message, f, v);
      });
    case FieldDescriptor::CPPTYPE_UINT32:
      return With(Number<std::uint32_t>(text), [&](auto v) {
        many ? r.AddUInt32(message, f, v) : r.SetUInt32(message, f, v);
      });
    case FieldDescriptor::CPPTYPE_INT64:
      return With(Number<std::int64_t>(text), [&](auto v) {
        many ? r.AddInt64(message, f, v) : r.SetInt64(message, f, v);
      });
    case FieldDescriptor::CPPTYPE_UINT64:
      return With(Number<std::uint64_t>(text), [&](auto v) {
        many ? r.AddUInt64(message, f, v) : r.SetUInt64(message, f, v);
      });
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return With(Real(text), [&](double v) {
        many ? r.AddDouble(message, f, v) : r.SetDouble(message, f, v);
      });
    case FieldDescriptor::CPPTYPE_FLOAT:
      return With(Real(text), [&](double d) {
        const auto v = static_cast<float>(d);
        many ? r.AddFloat(message, f, v) : r.SetFloat(message, f, v);
      });
    case FieldDescriptor::CPPTYPE_BOOL:
      return With(Truth(text), [&](bool v) {
        many ? r.AddBool(message, f, v) : r.SetBool(message, f, v);
      });
    case FieldDescriptor::CPPTYPE_ENUM:
      return With(EnumNumber(*field.enum_type(), text), [&](int v) {
        many ? r.AddEnumValue(message, f, v) : r.SetEnumValue(message, f, v);
      });
    case FieldDescriptor::CPPTYPE_STRING:
      many ? r.AddString(message, f, text) : r.SetString(message, f, text);
      return true;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return false;
  }
  return false;
}

}  // namespace penstock::config
