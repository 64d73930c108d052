// A row of published memory figures: what ran, how it was cut, and a peak in GiB.
//
// Only rows whose metric is a peak of the whole device can be compared; the others (activations alone, what was
// allocated at an error) are refused. torchtitan prints what the allocator reserved; it runs with expandable segments,
// which leave next to no fragmentation, so that this too is compared with the allocator's peak.
//
// torchtitan's selective recomputation by operator keeps the results of attention and of every second matrix product of
// a layer. The nearest that a run can say is to compute norms and activation functions again: it keeps about 10 bytes
// per token and hidden unit more on Llama 3 8B, while the loss as torchtitan 2024-12 computes it keeps 4 bytes per
// logit more than the model of the loss here. Both are of the size of 10 % of its peak.
#ifndef ORRERY_VALIDATION_PUBLISHED_MEMORY_H_
#define ORRERY_VALIDATION_PUBLISHED_MEMORY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "validation/catalogue.h"
#include "validation/record.h"
#include "validation/runs.h"

namespace orrery::validation {

// The spec that a row describes; `models` are the names of the presets. UNIMPLEMENTED names the first missing feature;
// INVALID_ARGUMENT a cell that cannot be read.
absl::StatusOr<RunOfRow> PublishedMemoryRun(const Record& record, const Catalogue& catalogue,
                                            const std::vector<std::string>& models);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_PUBLISHED_MEMORY_H_
