// A row of published memory figures: what ran, how it was cut, and a peak in GiB.
//
// Only rows whose metric is a peak of the whole device can be compared; the others (activations alone, what was
// allocated at an error) are refused. torchtitan prints what the allocator reserved,
// which is compared with the allocator's peak as it stands: expandable segments, which its guide recommends, leave
// little fragmentation. Assumed: no source says that these runs used them.
//
// torchtitan's selective recomputation by operator keeps the results of attention and of every second matrix product of
// a layer, 7.75 values per token and hidden unit of Llama 3 8B. The nearest that a run can say is to compute norms and
// activation functions again, which keeps 11.5: about 15 GiB too much for the published rows. The loss as torchtitan
// 2024-12 computes it keeps 4 bytes per logit more than the model of the loss here, about 8 GiB. The two cancel in
// part, so that agreement on these rows is no proof of either.
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
