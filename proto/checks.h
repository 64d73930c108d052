// What must hold between fields of a run.
#ifndef ORRERY_PROTO_CHECKS_H_
#define ORRERY_PROTO_CHECKS_H_

#include "orrery/v1/run.pb.h"
#include "proto/origins.h"

namespace orrery::spec {

// Reports every violation at the field that the user wrote. A check is left out where a field it needs is already
// wrong.
void CheckAcrossFields(const v1::Run& run, const Origins& origins, Diagnostics* diagnostics);

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_CHECKS_H_
