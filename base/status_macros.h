// The two macros that newer Abseil has in absl/status/status_macros.h and Debian 12's does not.
#ifndef ORRERY_BASE_STATUS_MACROS_H_
#define ORRERY_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define ORRERY_CONCAT_INNER(a, b) a##b
#define ORRERY_CONCAT(a, b) ORRERY_CONCAT_INNER(a, b)

// Returns from the enclosing function with the status of `expression` unless it is OK.
#define ABSL_RETURN_IF_ERROR(expression)                                                         \
  do {                                                                                           \
    if (absl::Status orrery_status_ = (expression); !orrery_status_.ok()) return orrery_status_; \
  } while (false)

// Evaluates `expression` to a StatusOr; returns its status when it failed, else moves its value into `lhs`.
#define ABSL_ASSIGN_OR_RETURN(lhs, expression) \
  ORRERY_ASSIGN_OR_RETURN_IMPL(ORRERY_CONCAT(orrery_statusor_, __LINE__), lhs, expression)
#define ORRERY_ASSIGN_OR_RETURN_IMPL(statusor, lhs, expression) \
  auto statusor = (expression);                                 \
  if (!statusor.ok()) return std::move(statusor).status();      \
  lhs = *std::move(statusor)

#endif  // ORRERY_BASE_STATUS_MACROS_H_
