#include "common/config/yaml_message.h"

#include <sys/stat.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/nearest_name.h"
#include "common/config/yaml_scalar.h"

namespace penstock::config {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

Position PositionOf(const YAML::Mark& mark) {
  return {mark.line + 1, mark.column + 1};
}

std::string WhereOf(const std::string& file, Position p) {
  if (p.line <= 0) return file;
  return absl::StrCat(file, ":", p.line, ":", p.column);
}

std::vector<std::string> FieldNames(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) {
    names.push_back(type.field(i)->name());
  }
  return names;
}

// What a node is, for messages.
std::string Describe(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return absl::StrCat("\"", node.Scalar().substr(0, 80), "\"");
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "fields (name: value)";
    default:
      return "nothing";
  }
}

// Walks a document against a message's descriptor. Each function handles one
// shape of field; faults are collected and the walk goes on.
class Walker {
 public:
  explicit Walker(const std::string& file) : file_(file), positions_(file) {}

  void Fill(const YAML::Node& node, const std::string& path, Message* message,
            int depth) {
    if (!Enter(node, depth)) return;
    if (!node.IsMap()) {
      return WrongType(node, "fields (name: value)");
    }
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (full()) return;
      FillEntry(entry.first, entry.second, path, message, depth, seen);
    }
  }

  absl::StatusOr<Positions> Result() {
    if (faults_.empty()) return std::move(positions_);
    if (cut_) faults_.push_back(file_ + ": there are more faults");
    return absl::InvalidArgumentError(absl::StrJoin(faults_, "\n"));
  }

 private:
  bool full() {
    cut_ = cut_ || faults_.size() >= kFaultsMax || stopped_;
    return cut_;
  }

  void Add(const YAML::Mark& mark, Problem problem) {
    if (full()) return;
    problem.where = WhereOf(file_, PositionOf(mark));
    if (problem.action.empty()) problem.action = "correct this value";
    faults_.emplace_back(
        MakeError(absl::StatusCode::kInvalidArgument, problem).message());
  }

  // Counts the node, against documents that grow when aliases are followed.
  bool Enter(const YAML::Node& node, int depth) {
    if (depth <= kYamlDepthMax && ++nodes_ <= kYamlNodesMax) return true;
    Add(node.Mark(),
        {.what = "the document is nested too deeply or has too many values "
                 "(aliases counted each time)",
         .found = "more than that",
         .expected = absl::StrCat("at most ", kYamlDepthMax, " levels and ",
                                  kYamlNodesMax, " values")});
    stopped_ = true;
    return false;
  }

  void WrongType(const YAML::Node& node, const std::string& expected) {
    Add(node.Mark(),
        {.what = "wrong type", .found = Describe(node), .expected = expected});
  }

  void FillEntry(const YAML::Node& key, const YAML::Node& value,
                 const std::string& path, Message* message, int depth,
                 std::set<std::string>& seen) {
    if (!key.IsScalar()) return WrongType(key, "the name of a field");
    const std::string& name = key.Scalar();
    const Descriptor& type = *message->GetDescriptor();
    const FieldDescriptor* field = type.FindFieldByName(name);
    if (field == nullptr) return Unknown(key, type);
    if (!seen.insert(name).second) {
      const std::string first = path.empty() ? name : path + "." + name;
      return Add(key.Mark(),
                 {.what = absl::StrCat("the field \"", name,
                                       "\" is given twice"),
                  .found = "given before at " + positions_.Where(first),
                  .expected = "one value",
                  .action = "remove one of them"});
    }
    if (const FieldDescriptor* other = OneofRival(*message, *field)) {
      return Add(key.Mark(),
                 {.what = absl::StrCat("\"", name, "\" and \"", other->name(),
                                       "\" are both given"),
                  .found = "both",
                  .expected = "one of them",
                  .action = "keep one of them"});
    }
    const std::string at = path.empty() ? name : absl::StrCat(path, ".", name);
    positions_.Set(at, PositionOf(value.IsNull() ? key.Mark() : value.Mark()));
    FillField(value, at, *field, message, depth + 1);
  }

  // The field of the same oneof that is set already.
  static const FieldDescriptor* OneofRival(const Message& message,
                                           const FieldDescriptor& field) {
    const auto* oneof = field.real_containing_oneof();
    if (oneof == nullptr) return nullptr;
    return message.GetReflection()->GetOneofFieldDescriptor(message, oneof);
  }

  void Unknown(const YAML::Node& key, const Descriptor& type) {
    const auto names = FieldNames(type);
    const std::string near = NearestName(key.Scalar(), names);
    Add(key.Mark(),
        {.what =
             absl::StrCat("unknown field \"", key.Scalar().substr(0, 80), "\""),
         .found = absl::StrCat("\"", key.Scalar().substr(0, 80), "\""),
         .expected = absl::StrCat("one of ", absl::StrJoin(names, ", ")),
         .action = near.empty() ? "correct or remove the field"
                                : absl::StrCat("did you mean \"", near, "\"?")});
  }

  void FillField(const YAML::Node& node, const std::string& path,
                 const FieldDescriptor& field, Message* message, int depth) {
    if (!field.is_repeated()) return FillOne(node, path, field, message, depth);
    if (!Enter(node, depth)) return;
    if (!node.IsSequence()) {
      return WrongType(node, "a list of " + Expects(field));
    }
    for (std::size_t i = 0; i < node.size() && !full(); ++i) {
      const std::string at = absl::StrCat(path, "[", i, "]");
      positions_.Set(at, PositionOf(node[i].Mark()));
      FillOne(node[i], at, field, message, depth + 1);
    }
  }

  void FillOne(const YAML::Node& node, const std::string& path,
               const FieldDescriptor& field, Message* message, int depth) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const auto* r = message->GetReflection();
      Message* child = field.is_repeated() ? r->AddMessage(message, &field)
                                           : r->MutableMessage(message, &field);
      if (node.IsNull()) return;  // "times:" is "times: {}"
      return Fill(node, path, child, depth);
    }
    if (!Enter(node, depth)) return;
    if (!node.IsScalar() || !PutScalar(node.Scalar(), field, message)) {
      BadScalar(node, field);
    }
  }

  void BadScalar(const YAML::Node& node, const FieldDescriptor& field) {
    std::string near;
    if (node.IsScalar() && field.enum_type() != nullptr) {
      near = NearestName(node.Scalar(), EnumNames(*field.enum_type()));
    }
    Add(node.Mark(),
        {.what = absl::StrCat("bad value of \"", field.name(), "\""),
         .found = Describe(node),
         .expected = Expects(field),
         .action =
             near.empty() ? "" : absl::StrCat("did you mean \"", near, "\"?")});
  }

  const std::string& file_;
  Positions positions_;
  std::vector<std::string> faults_;
  int nodes_ = 0;
  bool stopped_ = false, cut_ = false;
};

absl::Status Unreadable(const std::string& where, std::string what) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = where,
                    .what = "not a YAML document",
                    .found = std::move(what),
                    .expected = "YAML as the README shows it",
                    .action = "correct this place"});
}

}  // namespace

std::string Positions::Where(const std::string& field) const {
  for (std::string at = field;;) {
    if (auto it = at_.find(at); it != at_.end()) {
      return WhereOf(file_, it->second);
    }
    const std::size_t cut = at.find_last_of(".[");
    if (cut == std::string::npos) return file_;
    at.resize(cut);
  }
}

absl::StatusOr<Positions> ParseYaml(std::string_view text,
                                    const std::string& file, Message* message) {
  if (text.size() > kYamlBytesMax) {
    return Unreadable(file,
                      absl::StrCat("larger than ", kYamlBytesMax, " bytes"));
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1) {
      return Unreadable(file, "several documents (---); expected one");
    }
    Walker walker(file);
    const YAML::Node root =
        documents.empty() ? YAML::Node(YAML::NodeType::Map) : documents[0];
    if (!root.IsNull()) walker.Fill(root, "", message, 0);
    return walker.Result();
  } catch (const YAML::Exception& e) {
    return Unreadable(WhereOf(file, PositionOf(e.mark)),
                      absl::StrCat("not YAML: ", e.msg));
  }
}

absl::StatusOr<std::string> ReadYamlFile(const std::string& path) {
  struct Close {
    void operator()(std::FILE* f) const noexcept { std::fclose(f); }
  };
  struct stat st;  // a pipe would be waited for
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = path,
                      .what = "not a file",
                      .found = S_ISDIR(st.st_mode) ? "a folder"
                                                   : "a device, pipe or socket",
                      .expected = "a YAML file",
                      .action = "correct the path of the file"});
  }
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) {
    return MakeError(absl::StatusCode::kNotFound,
                     {.where = path,
                      .what = "the file cannot be opened",
                      .found = std::strerror(errno),
                      .expected = "a readable YAML file",
                      .action = "correct the path or the rights of the file"});
  }
  std::string text(kYamlBytesMax + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return ErrnoError(errno, path);
  return text;
}

}  // namespace penstock::config
