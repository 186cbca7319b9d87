#ifndef PENSTOCK_COMMON_CONFIG_YAML_MESSAGE_H_
#define PENSTOCK_COMMON_CONFIG_YAML_MESSAGE_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/status/status.h"

namespace google::protobuf {
class Message;
}

// YAML that people write, as a protobuf message, with positions.
namespace penstock::config {

inline constexpr std::size_t kYamlBytesMax = 1u << 20;
inline constexpr int kYamlDepthMax = 32;
inline constexpr int kYamlNodesMax = 100'000;  // aliases counted each time
inline constexpr int kFaultsMax = 20;          // reported in one run

// Line and column from 1.
struct Position {
  int line = 0, column = 0;
};

// Where a document says things: by field path, as "sources[1].view.frames".
class Positions {
 public:
  explicit Positions(std::string file = "") : file_(std::move(file)) {}
  void Set(const std::string& field, Position p) { at_[field] = p; }
  // "file:line:column" of the field, or of the nearest field around it that the
  // document has.
  std::string Where(const std::string& field) const;
  const std::string& file() const { return file_; }

 private:
  std::string file_;
  std::map<std::string, Position> at_;
};

// Fills `message` from a YAML document. Scalars go to string fields verbatim,
// to enums by the value's name in lower case without the enum's prefix.
// `file` names the document in messages.
//
// kInvalidArgument: not YAML, several documents, too large or deep, unknown
//                   fields (with the nearest name), a field twice, wrong types,
//                   two fields of a oneof. Up to kFaultsMax faults, in the
//                   order of the document, each "file:line:column: …" on a new
//                   line.
absl::StatusOr<Positions> ParseYaml(std::string_view text,
                                    const std::string& file,
                                    google::protobuf::Message* message);

// The whole of a YAML file. kNotFound and others: from errno
absl::StatusOr<std::string> ReadYamlFile(const std::string& path);

}  // namespace penstock::config

#endif  // PENSTOCK_COMMON_CONFIG_YAML_MESSAGE_H_
