// Makespans, bubbles and activation peaks of schedules in closed form, with the ranges in which they are exact.
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
//   interleaved-1f1b-torch: as interleaved-1f1b with N = m / max(1, floor(m / p)); p = 1: m v (F + B)
//   looped-bfs         sum over X = F, B of (v - 1) max(m X, p (X + c)) + (p - 1)(X + c) + m X              always
//                      (p = 1: no messages)
//
// Wall idle of every rank and the longest span's bubble, costs of one chunk, B = I + W, c = 0, X the cost of a block:
//   1f1b-overlap       (p - 1)(F + B)                                                                  X = F + B
//   combined-1f1b      as interleaved-1f1b                                                             X = F + B
//   seq1f1b            (p - 1)(F + B), costs of one slice                                              always
//   grouped-1f1b       (p - 1)(F + I)                                                                  N = p divides m
//                      (p - 1)(F + I) + (v - 1)(p - N) F                                     F = I = W, N divides m
//   interleaved-zb     (p - 1)(F + I) - (min(p, m) - 1) W         W <= min(F, I), and m >= p or v = 1; v = 1: zb-h1
//   zb-h1              the same, plus 4 (p - 1) c                             c > 0: m > p > 1 and 2 c <= W
//     span bubble      (p - 1)(F + I - W)                                          W <= min(F, I), m >= p
//   zb-h2              (p - 1) max(F, F + I - 2 W)                                 W <= min(F, I), m >= 2 p - 1
//                      plus (p - 1) c                                  c > 0: F = I = W and c <= F
//     span bubble      (p - 1)(F + I - 2 W)                            the same, and where that is not negative
//   zb-v               (p - 1) max(I, 2 (I - W))                                   W <= F <= I, m >= 2 p - 1
//     span bubble      2 (p - 1)(I - W)                                            the same
//   v-half             (3 p - 4) F, for even p (3 p - 7) F                         F = I = W, p >= 3, m >= 2 p
//   v-min              (4 p - 5) F, where 3 divides p (4 p - 7) F                  F = I = W, p >= 2, m >= 2 p
//   dualpipe           (p / 2 - 1)(X + F - 2 W), of the worst rank; of all where X = F + B              W <= I <= F
//   dualpipe-v         (p - 1)(X + F - 2 W), likewise                                                  W <= I <= F
//   chimera            2 (p / D - 1) max(F, B), D pipelines                                            m = p, or F = B
//
// Peak: chunk activations between the start of their F and the end of the B or W that frees them, on rank r.
//   gpipe, 1f1b, seq1f1b             m;   min(p - r, m);   min(p - 1 - r + s, m s) slices
//   1f1b-overlap, looped-bfs         min(2 (p - r), m);   m v
//   interleaved-1f1b (and -torch)    min(w + 1, m v), w = 2 (p - 1 - r) + (v - 1) N;   combined-1f1b min(w + 2, m v)
//   grouped-1f1b                     min(p - r + (v - 1) N, m v) where N divides m
//   zb-h1, zb-h2, interleaved-zb     min(p, m);   min(2 p - 1, m);   min(p + (v - 1) N, m v)
//   zb-v                             2 p for m >= 2 p - 1
//   dualpipe, dualpipe-v             p + 1;   2 p + 1
//   chimera                          p - p / D + 1 + the distance to the nearer end of its stretch of 2 p / D ranks
// of the worst rank only, for m >= 3 p:   v-half 2 floor((p + 2) / 2), v-min 2 floor((p + 4) / 3), p >= 2;
//   1f1b-v 2 floor(2 p / 3) + 2, p >= 2
#ifndef ORRERY_SCHEDULES_CLOSED_FORM_H_
#define ORRERY_SCHEDULES_CLOSED_FORM_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

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

// The same for stages of unequal cost and no latency: gpipe (m - 1) max F + sum F + (m - 1) max B + sum B; 1f1b
// (m - 1) max(F + B) + sum(F + B) where no stage has a longer F or a longer B than the last. `stages`: one entry each.
std::optional<std::int64_t> ClosedFormUnevenMakespan(std::string_view family, const Parameters& parameters,
                                                     const std::vector<PassCosts>& stages);

// Costs of one chunk with I and W apart.
struct ChunkCosts {
  PassCosts passes;
  std::int64_t latency = 0;
  // Of a fused block; without it F + I + W.
  std::optional<std::int64_t> block = std::nullopt;
};

// Wall idle: makespan - busy, of the rank with the most; nullopt as above.
std::optional<std::int64_t> ClosedFormIdle(std::string_view family, const Parameters& parameters,
                                           const ChunkCosts& costs);
// Last end - first start - busy, of the rank with the most; nullopt as above, and where it is not known apart from the
// idle time.
std::optional<std::int64_t> ClosedFormSpanBubble(std::string_view family, const Parameters& parameters,
                                                 const ChunkCosts& costs);

// Peak number of live chunk activations on a rank; nullopt as above.
std::optional<std::int64_t> ClosedFormPeak(std::string_view family, const Parameters& parameters, std::int32_t rank);
// Of the rank with the most.
std::optional<std::int64_t> ClosedFormWorstPeak(std::string_view family, const Parameters& parameters);
// In units of memory, for m at least the count of rank 0: zb-h1 (p - r) M_B + r M_W; zb-h2 (2p - 1 - 2r) M_B + 2r M_W.
std::optional<std::int64_t> ClosedFormPeakMemory(std::string_view family, const Parameters& parameters,
                                                 std::int32_t rank, const PassMemory& memory);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_CLOSED_FORM_H_
