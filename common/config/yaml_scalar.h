#ifndef PENSTOCK_COMMON_CONFIG_YAML_SCALAR_H_
#define PENSTOCK_COMMON_CONFIG_YAML_SCALAR_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>

// Scalars of a YAML document as values of message fields. Private to
// common/config.
namespace penstock::config {

// What a field takes, for messages: "a whole number from 0 to …".
std::string Expects(const google::protobuf::FieldDescriptor& field);

// Sets the field, or appends to it when it is repeated. False: the text is not
// of the field's type; the message is unchanged.
bool PutScalar(const std::string& text,
               const google::protobuf::FieldDescriptor& field,
               google::protobuf::Message* message);

// The names an enum's values have in YAML.
std::vector<std::string> EnumNames(const google::protobuf::EnumDescriptor& e);

}  // namespace penstock::config

#endif  // PENSTOCK_COMMON_CONFIG_YAML_SCALAR_H_
