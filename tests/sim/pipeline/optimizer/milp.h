// The ordering problem as a mixed-integer program, written as an LP file and given to CBC. Derived from the definition
// of a schedule alone: shares nothing with the search.
//
//   minimise T
//   e_x >= cost_x;  T >= e_x                                e_x: end of pass x
//   e_x >= e_y + latency + cost_x                           y is an input of x, or the pass of its kind before it
//   e_x >= e_y + cost_x - H (1 - b_yx)                      y before x on their rank; b_xy = 1 - b_yx
//   e_y >= e_x + cost_y - H b_yx
//   T >= e_x - cost_x + all work of the rank                           x: the first F of its lowest stage, always first
//   sum over y before x of what y takes (F: M_B, I: M_W - M_B, W: -M_W) + M_B <= limit         at every F x
#ifndef ORRERY_TESTS_SIM_PIPELINE_OPTIMIZER_MILP_H_
#define ORRERY_TESTS_SIM_PIPELINE_OPTIMIZER_MILP_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/pipeline/optimizer/optimize.h"

namespace orrery::pipeline {

class Milp {
 public:
  // The makespan: `request` has one cut.
  explicit Milp(const OptimizeRequest& request) : request_(request), cut_(request.cuts.front()) {
    const std::int32_t stages = cut_.placement.stages();
    for (std::int32_t s = 0; s < stages; ++s) {
      const schedules::PassCosts& costs = cut_.costs.Of(s);
      horizon_ += request.micro_batches * (costs.forward + costs.backward()) + 2 * cut_.costs.latency;
    }
    constraints_ = "Subject To\n";
    for (std::int32_t s = 0; s < stages; ++s) {
      for (int kind = 0; kind < 3; ++kind) {
        for (std::int32_t k = 0; k < request.micro_batches; ++k) AddPass(s, kind, k);
      }
    }
    for (std::int32_t rank = 0; rank < cut_.placement.ranks(); ++rank) AddRank(rank);
  }

  std::string Text() const {
    std::string text = absl::StrCat("Minimize\n obj: T\n", constraints_, "Binaries\n");
    for (const std::string& binary : binaries_) absl::StrAppend(&text, " ", binary, "\n");
    return absl::StrCat(text, "End\n");
  }

 private:
  struct Pass {
    std::int32_t stage;
    int kind;
    std::int32_t k;
  };

  static std::string Name(const Pass& pass) {
    return absl::StrCat(std::string(1, "FIW"[pass.kind]), pass.stage, "_", pass.k);
  }
  std::int64_t CostOf(const Pass& pass) const {
    const schedules::PassCosts& costs = cut_.costs.Of(pass.stage);
    return pass.kind == 0 ? costs.forward : pass.kind == 1 ? costs.input_gradient : costs.weight_gradient;
  }
  std::int64_t Taken(const Pass& pass) const {
    const schedules::PassMemory& memory = cut_.costs.memory;
    return pass.kind == 0 ? memory.forward : pass.kind == 1 ? memory.weight - memory.forward : -memory.weight;
  }

  void After(const Pass& pass, const Pass& input) {
    const bool same = cut_.placement.PlaceOf(pass.stage).rank == cut_.placement.PlaceOf(input.stage).rank;
    absl::StrAppend(&constraints_, " e", Name(pass), " - e", Name(input),
                    " >= ", CostOf(pass) + (same ? 0 : cut_.costs.latency), "\n");
  }

  void AddPass(std::int32_t stage, int kind, std::int32_t k) {
    const Pass pass{stage, kind, k};
    absl::StrAppend(&constraints_, " e", Name(pass), " >= ", CostOf(pass), "\n T - e", Name(pass), " >= 0\n");
    if (k > 0) After(pass, {stage, kind, k - 1});
    if (kind > 0) After(pass, {stage, kind - 1, k});
    if (kind == 0 && stage > 0) After(pass, {stage - 1, kind, k});
    if (kind == 1 && stage + 1 < cut_.placement.stages()) After(pass, {stage + 1, kind, k});
  }

  // y always comes before x: on one stage F, I, W of a micro-batch in turn, kinds first-in-first-out.
  static bool Always(const Pass& y, const Pass& x) { return y.stage == x.stage && y.kind <= x.kind && y.k <= x.k; }

  static std::string Before(const Pass& y, const Pass& x) { return absl::StrCat("b", Name(y), "__", Name(x)); }

  void AddRank(std::int32_t rank) {
    std::vector<Pass> passes;
    for (std::int32_t chunk = 0; chunk < cut_.placement.ChunksOf(rank); ++chunk) {
      for (int kind = 0; kind < 3; ++kind) {
        for (std::int32_t k = 0; k < request_.micro_batches; ++k) {
          passes.push_back({cut_.placement.StageOf(rank, chunk), kind, k});
        }
      }
    }
    for (std::size_t i = 0; i < passes.size(); ++i) {
      for (std::size_t j = i + 1; j < passes.size(); ++j) {
        if (!Always(passes[i], passes[j]) && !Always(passes[j], passes[i])) AddPair(passes[i], passes[j]);
      }
    }
    std::int64_t work = 0;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      work += CostOf(passes[i]);
      if (passes[i].kind == 0) AddMemory(passes, i);
    }
    const std::int32_t lowest = cut_.placement.StageOf(rank, 0);
    const Pass first{lowest, 0, 0};
    absl::StrAppend(&constraints_, " T - e", Name(first), " >= ", work - CostOf(first), "\n");
  }

  void AddPair(const Pass& y, const Pass& x) {
    const std::string binary = Before(y, x);
    binaries_.push_back(binary);
    absl::StrAppend(&constraints_, " e", Name(x), " - e", Name(y), " - ", horizon_, " ", binary,
                    " >= ", CostOf(x) - horizon_, "\n");
    absl::StrAppend(&constraints_, " e", Name(y), " - e", Name(x), " + ", horizon_, " ", binary, " >= ", CostOf(y),
                    "\n");
  }

  void AddMemory(const std::vector<Pass>& passes, std::size_t at) {
    const Pass& x = passes[at];
    std::int64_t fixed = Taken(x);
    std::string sum;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const Pass& y = passes[i];
      const std::int64_t taken = Taken(y);
      if (i == at || taken == 0 || Always(x, y)) continue;
      if (Always(y, x)) {
        fixed += taken;
      } else if (i < at) {
        absl::StrAppend(&sum, taken < 0 ? " - " : " + ", std::abs(taken), " ", Before(y, x));
      } else {  // 1 - b(x before y)
        fixed += taken;
        absl::StrAppend(&sum, taken < 0 ? " + " : " - ", std::abs(taken), " ", Before(x, y));
      }
    }
    if (!sum.empty()) absl::StrAppend(&constraints_, sum, " <= ", request_.memory_limit - fixed, "\n");
  }

  const OptimizeRequest& request_;
  const Cut& cut_;
  std::int64_t horizon_ = 0;
  std::string constraints_;
  std::vector<std::string> binaries_;
};

// CBC 2.10.8, which Debian has, cuts off optima of these programs by mixed-integer rounding: it proves 96 for two ranks
// with two chunks and two micro-batches, where it finds an order of 89 without cuts. Hence without: plain branch and
// bound.
struct CbcAnswer {
  bool closed = false;
  std::int64_t makespan = 0;  // best found
};
// Limited in nodes of its tree, not in time, so that a loaded machine gives the same answer. nullopt: no answer within
// the limit.
inline std::optional<CbcAnswer> RunCbc(const OptimizeRequest& request, int nodes, const std::string& folder) {
  const std::string problem = folder + "/problem.lp";
  const std::string solution = folder + "/solution.txt";
  std::ofstream(problem) << Milp(request).Text();
  std::remove(solution.c_str());
  const std::string command =
      absl::StrCat("cbc ", problem, " -cuts off maxNodes ", nodes, " solve solution ", solution, " > /dev/null 2>&1");
  if (std::system(command.c_str()) != 0) return std::nullopt;  // NOLINT(cert-env33-c): a fixed command
  std::ifstream in(solution);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  const std::size_t at = line.find("objective value ");
  if (at == std::string::npos) return std::nullopt;
  const double value = std::atof(line.c_str() + at + std::string("objective value ").size());
  if (value > 1e40 || line.find("infeasible") != std::string::npos) return std::nullopt;
  return CbcAnswer{line.rfind("Optimal", 0) == 0, std::llround(value)};
}

inline bool HasCbc() { return std::system("command -v cbc > /dev/null 2>&1") == 0; }  // NOLINT(cert-env33-c)

}  // namespace orrery::pipeline

#endif  // ORRERY_TESTS_SIM_PIPELINE_OPTIMIZER_MILP_H_
