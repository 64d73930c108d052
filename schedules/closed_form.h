// Makespans and activation peaks of the classical schedules in closed form, with the ranges in which they are exact.
//
// p ranks, v stages per rank, m micro-batches, N group size, F and B the cost of one stage's forward and full backward
// pass (equal on all stages), c the latency of a message. Derivation of the terms without c: Narayanan et al., SC 2021,
// section 2.2. The terms in c and their ranges were found by evaluating every order up to p = 16, m = 64, v = 4; the
// tests repeat that and show that every range ends where it says.
//
//   gpipe              (m + p - 1)(F + B) + 2 (p - 1) c                                                      always
//   1f1b               (m + p - 1)(F + B) + 2 (p - 2 + m - floor((m + p - 2) / p)) c                         always
//                      where p divides m, the last term is [2 (p - 1)(m / p + 1) - 2] c: it grows with m
//   interleaved-1f1b   m v (F + B) + idle + exposed c, for c = 0, and for c <= min(F, B) where
//     m < p            idle = [(p - 1) + (v - 1)(p - m)](F + B), exposed = 2 (p v - 1)
//     N = p            idle = (p - 1)(F + B), exposed = 2 (p v - 1): each return to rank 0 is exposed, once
//     v = 1            idle = (p - 1)(F + B), exposed = 2 (p - 1)
//     N > p            idle = (p - 1)(F + B), exposed = 2 (p - 1): the slack of N - p passes hides the returns
//                      while p c <= (N - p) min(F, B). The last group of R = m mod N > 0 micro-batches hides its own
//                      while p c <= (R - p) min(F, B); for R = p it hides none: exposed = 2 (p - 1) + (v - 1) p.
//
// Peak: chunk activations between the start of their forward and the end of their backward pass on rank r.
//   gpipe m;   1f1b min(p - r, m);   interleaved-1f1b min(w + 1, m v), w = 2 (p - 1 - r) + (v - 1) N
#ifndef ORRERY_SCHEDULES_CLOSED_FORM_H_
#define ORRERY_SCHEDULES_CLOSED_FORM_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "schedules/family.h"

namespace orrery::schedules {

// Costs of one chunk pass, equal on all stages, and of one message (eager: it arrives `latency` after its producer's
// end).
struct UniformCosts {
  Time forward;
  Time backward;  // full
  Time latency;
};

// Makespan of one cold iteration, or nullopt outside the range in which the form is exact, for parameters that the
// family refuses, and for an unknown family.
std::optional<Time> ClosedFormMakespan(std::string_view family, const Parameters& parameters,
                                       const UniformCosts& costs);

// Peak number of live chunk activations on a rank; nullopt as above.
std::optional<std::int64_t> ClosedFormPeak(std::string_view family, const Parameters& parameters, std::int32_t rank);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_CLOSED_FORM_H_
