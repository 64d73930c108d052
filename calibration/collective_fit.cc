#include "calibration/collective_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/math.h"
#include "base/status_macros.h"
#include "calibration/rounding.h"

namespace orrery::calibration {
namespace {

using Mutable = v1::Constant* (v1::NcclTimes::*)();

// A constant, what it could be at all, and where the search begins.
struct Parameter {
  const char* name;
  Mutable constant;
  double low, high, start;
};
constexpr Parameter kParameters[] = {
    {"nvlink_step", &v1::NcclTimes::mutable_nvlink_step, 2e-6, 12e-6, 8e-6},
    {"net_step", &v1::NcclTimes::mutable_net_step, 5e-6, 70e-6, 30e-6},
    {"channel_bandwidth", &v1::NcclTimes::mutable_channel_bandwidth, 8e9, 40e9, 25e9},
    {"tree_channel_bandwidth", &v1::NcclTimes::mutable_tree_channel_bandwidth, 5e9, 20e9, 8e9},
    {"nvlink_share", &v1::NcclTimes::mutable_nvlink_share, 0.7, 1, 0.9},
    {"nvls_launch", &v1::NcclTimes::mutable_nvls_launch, 5e-6, 60e-6, 28e-6},
    {"nvls_chunk", &v1::NcclTimes::mutable_nvls_chunk, 0.05e-6, 3e-6, 0.6e-6},
    {"nvls_channel_bandwidth", &v1::NcclTimes::mutable_nvls_channel_bandwidth, 8e9, 40e9, 20e9},
    {"nvls_tree_work", &v1::NcclTimes::mutable_nvls_tree_work, 0.3, 1, 0.55},
    {"nvls_tree_step", &v1::NcclTimes::mutable_nvls_tree_step, 5e-6, 60e-6, 25e-6},
    {"sharp_share", &v1::NcclTimes::mutable_sharp_share, 0.2, 1, 0.5},
};

constexpr double kFirstStep = 0.3;
constexpr double kLastStep = 0.002;
constexpr double kShrink = 0.7;
constexpr int kRounds = 12;   // over all constants at one step
constexpr int kDescents = 2;  // each from where the one before ended, with large steps again
constexpr double kGain = 1e-7;
constexpr double kSquare = 0.01;     // weight of the squared error
constexpr double kHostMargin = 1.5;  // hosts differ by this from the time of issue that is assumed
constexpr double kResponse = 0.3;    // by which a constant is moved to see whether any row responds

// Whether rings of the rows differ in channels or in the links that these share: else a channel that is slow looks like
// a link that is.
bool TellsChannelsFromLinks(const v1::NcclTimes& base, const std::vector<const MeasuredCollective*>& rows) {
  std::set<std::pair<std::int64_t, bool>> rings;
  for (const MeasuredCollective* row : rows) {
    collectives::nccl::Price price;
    ORRERY_CHECK(PredictCollective(*row, base, &price).ok());  // FitCollectives has asked
    if (price.variant != collectives::nccl::Variant{v1::RING, v1::SIMPLE}) continue;
    rings.emplace(price.channels, row->communicator.nodes > 1);
  }
  return rings.size() > 1;
}

class Search {
 public:
  Search(const v1::NcclTimes& base, const std::vector<const MeasuredCollective*>& rows) : times_(base), rows_(rows) {
    const double error = Error();
    const bool fits_channels = TellsChannelsFromLinks(base, rows);
    for (const Parameter& parameter : kParameters) {
      if (parameter.constant == &v1::NcclTimes::mutable_channel_bandwidth && !fits_channels) continue;
      const double value = ConstantOf(parameter).value();
      for (const double factor : {1 + kResponse, 1 - kResponse}) {
        ConstantOf(parameter).set_value(value * factor);
        if (Error() == error) continue;
        responding_.push_back(parameter);
        break;
      }
      ConstantOf(parameter).set_value(value);
    }
    for (const Parameter& parameter : responding_) ConstantOf(parameter).set_value(parameter.start);
  }

  const v1::NcclTimes& Run() {
    best_ = Error();
    for (int descent = 0; descent < kDescents; ++descent) Descend();
    for (const Parameter& parameter : responding_) {
      ConstantOf(parameter).set_value(Rounded(ConstantOf(parameter).value()));
    }
    best_ = Error();
    return times_;
  }

  std::vector<Determination> Determine() {
    constexpr double kMove = 0.1;
    std::vector<Determination> found;
    for (const Parameter& parameter : responding_) {
      const double value = ConstantOf(parameter).value();
      double growth = std::numeric_limits<double>::infinity();
      for (const double factor : {1 + kMove, 1 - kMove}) {
        ConstantOf(parameter).set_value(value * factor);
        growth = std::min(growth, Error() - best_);
      }
      ConstantOf(parameter).set_value(value);
      found.push_back({parameter.name, growth});
    }
    return found;
  }

  const std::vector<Parameter>& responding() const { return responding_; }

 private:
  void Descend() {
    for (double step = kFirstStep; step > kLastStep; step *= kShrink) {
      bool better = true;
      for (int round = 0; better && round < kRounds; ++round) {
        better = false;
        for (const Parameter& parameter : responding_) {
          better = Try(parameter, 1 + step) || Try(parameter, 1 - step) || better;
        }
      }
    }
  }

  v1::Constant& ConstantOf(const Parameter& parameter) { return *(times_.*parameter.constant)(); }

  double Error() const {
    double sum = 0;
    for (const MeasuredCollective* row : rows_) {
      const absl::StatusOr<double> predicted = PredictCollective(*row, times_);
      ORRERY_CHECK(predicted.ok());  // FitCollectives has asked
      const double error = Log(*predicted / row->seconds);
      sum += std::fabs(error) + kSquare * error * error;
    }
    return sum / static_cast<double>(rows_.size());
  }

  bool Try(const Parameter& parameter, double factor) {
    const double before = ConstantOf(parameter).value();
    const double least = 0.02 * parameter.high;
    const double moved = before < least ? before + (factor - 1) * least : before * factor;
    const double after = std::clamp(moved, parameter.low, parameter.high);
    if (after == before) return false;
    ConstantOf(parameter).set_value(after);
    const double error = Error();
    if (error < best_ - kGain) {
      best_ = error;
      return true;
    }
    ConstantOf(parameter).set_value(before);
    return false;
  }

  v1::NcclTimes times_;
  const std::vector<const MeasuredCollective*>& rows_;
  std::vector<Parameter> responding_;
  double best_ = 0;
};

constexpr char kSeeHead[] = "see the head of the file";

// The head that the source of a constant speaks of is the base's.
void NameKept(const std::string& base, v1::NcclTimes* times) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  const google::protobuf::Reflection* const reflection = times->GetReflection();
  reflection->ListFields(*times, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->message_type() != v1::Constant::descriptor()) continue;
    auto* constant = static_cast<v1::Constant*>(reflection->MutableMessage(times, field));
    std::string source = constant->source();
    if (!source.ends_with(kSeeHead)) continue;
    source.resize(source.size() - std::string_view(kSeeHead).size());
    constant->set_source(absl::StrCat(source, "see preset ", base, ", from which it is kept"));
  }
}

}  // namespace

bool IsHeldOut(const MeasuredCollective& row) { return HeldOut(row.split); }

bool IsBoundByHost(const MeasuredCollective& row) { return row.seconds < kHostMargin * row.issue_seconds; }

absl::StatusOr<CollectiveFit> FitCollectives(const v1::NcclTimes& base, const std::vector<MeasuredCollective>& rows) {
  std::vector<const MeasuredCollective*> seen;
  for (const MeasuredCollective& row : rows) {
    const absl::StatusOr<double> predicted = PredictCollective(row, base);
    if (!predicted.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", row.line, ": ", std::string(predicted.status().message())));
    }
    if (!IsHeldOut(row) && !IsBoundByHost(row)) seen.push_back(&row);
  }
  CollectiveFit fit;
  fit.times = base;
  NameKept(base.name(), &fit.times);
  if (!seen.empty()) {
    Search search(fit.times, seen);
    fit.times = search.Run();
    fit.constants = search.Determine();
    const std::string source = absl::StrCat("fitted on ", seen.size(), " measured collectives: ", kSeeHead);
    for (const Parameter& parameter : search.responding()) (fit.times.*parameter.constant)()->set_source(source);
  }
  std::vector<double> fitted, held_out;
  for (const MeasuredCollective& row : rows) {
    ABSL_ASSIGN_OR_RETURN(const double predicted, PredictCollective(row, fit.times));
    (IsHeldOut(row) ? held_out : fitted).push_back(predicted / row.seconds - 1);
  }
  fit.fitted = SummariseErrors(fitted);
  fit.held_out = SummariseErrors(held_out);
  return fit;
}

}  // namespace orrery::calibration
