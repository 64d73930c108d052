// `--set path=value`.
#ifndef ORRERY_PROTO_OVERRIDES_H_
#define ORRERY_PROTO_OVERRIDES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "proto/origins.h"

namespace orrery::spec {

struct Override {
  std::string path;   // "perturbation.slow_gpus[0].factor"
  std::string value;  // text format
  int source = 0;     // of the diagnostics
  // It names an element of a list, which may come from a preset.
  bool has_index() const { return path.find('[') != std::string::npos; }
};

// What stands before "=", or before the block of "path {fields}".
std::string PathOfOverride(absl::string_view text);

// Registers each text as a source; one without path, "=" or block is an error.
std::vector<Override> ParseOverrides(const std::vector<std::string>& texts, Diagnostics* diagnostics);

// Writes one override into `message`: a scalar is set, a block merged, a list replaced, an element of a list set or
// merged.
void ApplyOverride(const Override& parsed, google::protobuf::Message* message, Origins* origins,
                   Diagnostics* diagnostics);

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_OVERRIDES_H_
