// Reads protobuf text format into a message and remembers where every field stands.
//
// Protobuf's own TextFormat stops at the first wrong type and does not say which field it was in; a user wants every
// mistake at once. The grammar is the one that TextFormat prints: fields by name, blocks in {} or <>, lists in [],
// adjacent strings joined, # comments. Extensions, Any and field numbers have no place in a spec. Enum values are
// names. Where a value is wrong it is skipped, the error recorded, and reading goes on behind it.
#ifndef ORRERY_PROTO_TEXT_READER_H_
#define ORRERY_PROTO_TEXT_READER_H_

#include <string>
#include <string_view>

#include "google/protobuf/message.h"
#include "proto/origins.h"

namespace orrery::spec {

// Reads a whole file into `message`; paths of its fields start with `prefix`. A byte order mark is passed over.
void ReadText(std::string_view text, int source, const std::string& prefix, google::protobuf::Message* message,
              Origins* origins, Diagnostics* diagnostics);

// Reads the value of one field, as it stands behind "path=" of an override: a scalar, a block, or a list. A singular
// message is merged, a list replaced. Strings may lack their quotes.
void ReadValue(std::string_view text, int source, const std::string& path,
               const google::protobuf::FieldDescriptor* field, google::protobuf::Message* message, Origins* origins,
               Diagnostics* diagnostics);

// Whether the bytes are UTF-8.
bool IsUtf8(std::string_view bytes);

// Why a file's contents cannot be a spec, "" where they can: empty, or not a text.
std::string NotText(std::string_view text);

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_TEXT_READER_H_
