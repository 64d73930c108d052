#include "calibration/gemm_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/math.h"
#include "base/statistics.h"
#include "calibration/rounding.h"
#include "sim/kernels/gemm.h"

namespace orrery::calibration {
namespace {

using Mutable = v1::Constant* (v1::GemmProfile::*)();

// A constant that is fitted: where it stands, its bounds and where searches begin.
struct Parameter {
  const char* name;
  Mutable constant;
  double low;
  double high;
  double starts[2];
};

// In the order in which a search takes them; the first needs a single row. `memory_efficiency` stays below what a
// reduction that only reads has reached of an H100's memory, 3.18 of 3.35 TB/s (Azure/AI-benchmarking-guide).
constexpr Parameter kParameters[] = {
    {"efficiency", &v1::GemmProfile::mutable_efficiency, 0.1, 0.95, {0.7, 0.8}},
    {"operand_reload", &v1::GemmProfile::mutable_operand_reload, 0, 200, {10, 50}},
    {"first_wave_gain", &v1::GemmProfile::mutable_first_wave_gain, 0, 1, {0.1, 0.3}},
    {"exposed_share", &v1::GemmProfile::mutable_exposed_share, 0, 1, {0.1, 0.3}},
    {"wave_overhead", &v1::GemmProfile::mutable_wave_overhead, 0, 10e-6, {0.5e-6, 0.5e-6}},
    {"memory_efficiency", &v1::GemmProfile::mutable_memory_efficiency, 0.2, 0.95, {0.85, 0.85}},
    {"overhead", &v1::GemmProfile::mutable_overhead, 0, 50e-6, {5e-6, 5e-6}},
};

constexpr double kFirstStep = 0.1;
constexpr double kLastStep = 0.002;
constexpr double kShrink = 0.6;
constexpr int kRounds = 8;  // over all constants at one step
constexpr double kGain = 1e-7;
// Weight of the squared error beside the absolute one: between two rows that contradict each other the middle is taken.
constexpr double kSquare = 0.01;

class Search {
 public:
  Search(const v1::Accelerator& accelerator, const v1::GemmProfile& base, std::vector<Parameter> parameters,
         const std::vector<const MeasuredGemm*>& rows)
      : accelerator_(accelerator), profile_(base), parameters_(std::move(parameters)), rows_(rows) {}

  // The best profile in the parameters: of one search from each corner of their starts the best, the first of equals.
  const v1::GemmProfile& Run() {
    const std::size_t count = parameters_.size();
    v1::GemmProfile best = profile_;
    double least = std::numeric_limits<double>::infinity();
    for (unsigned corner = 0; corner < 1u << count; ++corner) {
      if (!SetStart(corner)) continue;
      Descend();
      for (std::size_t i = 0; i < count; ++i) Constant(i).set_value(Rounded(Constant(i).value()));
      const double error = Error();
      if (error >= least) continue;
      least = error;
      best = profile_;
    }
    profile_ = best;
    best_ = least;
    return profile_;
  }

  // How much the error grows when parameter i alone is 10 % larger or smaller.
  double Growth(std::size_t i) {
    constexpr double kMove = 0.1;
    const double value = Constant(i).value();
    double growth = std::numeric_limits<double>::infinity();
    for (const double factor : {1 + kMove, 1 - kMove}) {
      Constant(i).set_value(value * factor);
      growth = std::min(growth, Error() - best_);
    }
    Constant(i).set_value(value);
    return growth;
  }

 private:
  // False where another corner is the same point.
  bool SetStart(unsigned corner) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const bool second = (corner >> i & 1u) != 0;
      if (second && parameters_[i].starts[1] == parameters_[i].starts[0]) return false;
      Constant(i).set_value(parameters_[i].starts[second ? 1 : 0]);
    }
    return true;
  }

  void Descend() {
    best_ = Error();
    for (double step = kFirstStep; step > kLastStep; step *= kShrink) {
      bool better = true;
      for (int round = 0; better && round < kRounds; ++round) {
        better = false;
        for (std::size_t i = 0; i < parameters_.size(); ++i) better = Try(i, 1 + step) || Try(i, 1 - step) || better;
      }
    }
  }

  v1::Constant& Constant(std::size_t i) { return *(profile_.*parameters_[i].constant)(); }

  double Error() const {
    double sum = 0;
    for (const v1::DataType type : {v1::FP32, v1::FP16, v1::BF16, v1::FP8}) {
      const FlopsPerSecond peak = PeakOf(accelerator_, type);
      if (peak.count() == 0) continue;
      const kernels::GemmModel model(accelerator_, profile_, peak, kernels::OperandBytes(type));
      for (const MeasuredGemm* row : rows_) {
        if (row->type != type) continue;
        const double error = Log(model.Seconds(row->gemm) / row->seconds());
        sum += std::fabs(error) + kSquare * error * error;
      }
    }
    return sum / static_cast<double>(rows_.size());
  }

  // Moves parameter i by a factor if that makes the error smaller; off zero by a share of a hundredth of its range.
  bool Try(std::size_t i, double factor) {
    const Parameter& parameter = parameters_[i];
    const double before = Constant(i).value();
    const double least = 0.01 * parameter.high;
    double after = before * factor;
    if (before < least) after = before + (factor - 1) * least;
    after = std::clamp(after, parameter.low, parameter.high);
    if (after == before) return false;
    Constant(i).set_value(after);
    const double error = Error();
    if (error < best_ - kGain) {
      best_ = error;
      return true;
    }
    Constant(i).set_value(before);
    return false;
  }

  const v1::Accelerator& accelerator_;
  v1::GemmProfile profile_;
  std::vector<Parameter> parameters_;
  const std::vector<const MeasuredGemm*>& rows_;
  double best_ = 0;
};

// predicted / measured - 1 of rows, by what a fit may see.
struct Errors {
  std::vector<double> fitted, held_out, too_short;
};

}  // namespace

std::vector<std::string> FittedGemmConstants() {
  std::vector<std::string> names;
  for (const Parameter& parameter : kParameters) names.emplace_back(parameter.name);
  return names;
}

GemmFit FitGemm(const v1::Accelerator& accelerator, const v1::GemmProfile& base, const std::vector<MeasuredGemm>& rows,
                const std::set<std::string>& keep) {
  const Split split(static_cast<int>(rows.size()));
  std::vector<const MeasuredGemm*> seen;
  for (const MeasuredGemm& row : rows) {
    if (row.microseconds >= kShortKernel && !split.IsHeldOut(row)) seen.push_back(&row);
  }
  GemmFit fit;
  fit.profile = base;
  std::vector<Parameter> parameters;
  const std::size_t most = static_cast<int>(seen.size()) >= kManyRows ? std::size(kParameters) : 1;
  for (std::size_t i = 0; i < most; ++i) {
    if (!keep.contains(kParameters[i].name)) parameters.push_back(kParameters[i]);
  }
  if (!seen.empty() && !parameters.empty()) {
    Search search(accelerator, base, parameters, seen);
    fit.profile = search.Run();
    const std::string source = absl::StrCat("fitted on ", seen.size(), " measured kernels: see the head of the file");
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      (fit.profile.*parameters[i].constant)()->set_source(source);
      fit.constants.push_back({parameters[i].name, search.Growth(i)});
    }
  }
  Errors all;
  std::vector<std::string> names;
  std::map<std::string, Errors> groups;
  for (const MeasuredGemm& row : rows) {
    const kernels::GemmModel model(accelerator, fit.profile, PeakOf(accelerator, row.type),
                                   kernels::OperandBytes(row.type));
    const double error = model.Seconds(row.gemm) / row.seconds() - 1;
    const std::string name = absl::StrCat(row.gpu, ", ", row.dtype, ", ", row.library);
    if (!groups.contains(name)) names.push_back(name);
    for (Errors* errors : {&all, &groups[name]}) {
      std::vector<double>& list = row.microseconds < kShortKernel ? errors->too_short
                                  : split.IsHeldOut(row)          ? errors->held_out
                                                                  : errors->fitted;
      list.push_back(error);
    }
  }
  fit.fitted = SummariseErrors(all.fitted);
  fit.held_out = SummariseErrors(all.held_out);
  fit.too_short = SummariseErrors(all.too_short);
  for (const std::string& name : names) {
    const Errors& errors = groups[name];
    fit.groups.push_back(
        {name, SummariseErrors(errors.fitted), SummariseErrors(errors.held_out), SummariseErrors(errors.too_short)});
  }
  return fit;
}

}  // namespace orrery::calibration
