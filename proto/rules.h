// The rules that the schema itself states: ranges, units, required fields (orrery/v1/options.proto).
#ifndef ORRERY_PROTO_RULES_H_
#define ORRERY_PROTO_RULES_H_

#include <string>
#include <vector>

#include "google/protobuf/message.h"
#include "orrery/v1/options.pb.h"
#include "proto/origins.h"

namespace orrery::spec {

const v1::Rule& RuleOf(const google::protobuf::FieldDescriptor* field);

// What a field may be, in words: "a whole number from 1 to 1024", "one of SERIAL, PARALLEL", "true or false".
std::string AllowedValues(const google::protobuf::FieldDescriptor* field);

// "from 1 to 1024 seconds".
std::string AllowedRange(const v1::Rule& rule);

// Names that may be written: of an enum its values but the unspecified one, of a message its fields.
std::vector<std::string> ValueNames(const google::protobuf::EnumDescriptor* type);
std::vector<std::string> FieldNames(const google::protobuf::Descriptor* type);

// Checks every field that is present, and that those which must be are.
void CheckRules(const google::protobuf::Message& message, const std::string& path, const Origins& origins,
                Diagnostics* diagnostics);

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_RULES_H_
