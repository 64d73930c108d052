// How far a prediction of an iteration time may be off: the errors seen on published runs like it.
//
// A family is a software level on an accelerator; the more general ones, any level or any accelerator, serve where too
// few runs of the special one were published. Nothing is fitted: these are quantiles of `validate runs`.
#ifndef ORRERY_VALIDATION_EXPECTED_ERROR_H_
#define ORRERY_VALIDATION_EXPECTED_ERROR_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "orrery/v1/record.pb.h"
#include "orrery/v1/run.pb.h"
#include "validation/report.h"

namespace orrery::validation {

// One entry for each family with five predicted rows or more, by name.
v1::ExpectedErrors ExpectedErrorsOf(const Report& report);

// The file that holds them, in text format, with a comment that names the command.
std::string ExpectedErrorsText(const v1::ExpectedErrors& errors);

// From record/expected_errors.txtpb of the first folder of the spec path that has it; empty where none has.
absl::StatusOr<v1::ExpectedErrors> LoadExpectedErrors(const std::vector<std::string>& spec_path);

// The most special family that holds the run: level and accelerator, level, accelerator, all.
std::optional<v1::ExpectedError> ExpectedErrorOf(const v1::ExpectedErrors& errors, std::string_view software,
                                                 std::string_view accelerator);

// "megatron-lm-2022 on a100-sxm-80gb".
std::string FamilyName(const v1::ExpectedError& family);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_EXPECTED_ERROR_H_
