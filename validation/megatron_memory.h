// A row of Megatron-LM's functional tests: a column for each argument, and the environment that it ran in.
//
// Blank arguments take Megatron-LM's defaults, which are the level's or follow from others: GPT-2's vocabulary, dropout
// 0.1, an MLP of 4 x hidden, as many key as query heads, learned positions. Some arguments have no column but stand in
// the name of the test ("rope_embeddings", "disable_bias_linear"). The backend of attention, where it is left to
// Transformer Engine, is fused but in the containers of the environments lts_dgxa100_*, whose Transformer Engine does
// not fuse on A100.
#ifndef ORRERY_VALIDATION_MEGATRON_MEMORY_H_
#define ORRERY_VALIDATION_MEGATRON_MEMORY_H_

#include "absl/status/statusor.h"
#include "validation/catalogue.h"
#include "validation/record.h"
#include "validation/runs.h"

namespace orrery::validation {

// The spec that a row describes. UNIMPLEMENTED names the first missing feature; INVALID_ARGUMENT a cell that cannot be
// read.
absl::StatusOr<RunOfRow> MegatronTestRun(const Record& record, const Catalogue& catalogue);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_MEGATRON_MEMORY_H_
