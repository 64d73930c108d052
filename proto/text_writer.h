// Specs as text: resolved runs, and the template of `orrery spec new`.
#ifndef ORRERY_PROTO_TEXT_WRITER_H_
#define ORRERY_PROTO_TEXT_WRITER_H_

#include <string>

#include "orrery/v1/run.pb.h"

namespace orrery::spec {

// The digest of LoadedRun::sha256.
std::string SpecSha256(const v1::Run& run);

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_TEXT_WRITER_H_
