#include "calibration/attention_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/format.h"
#include "base/math.h"
#include "base/random.h"
#include "calibration/measured.h"
#include "calibration/rounding.h"
#include "sim/kernels/attention.h"

namespace orrery::calibration {
namespace {

using Rows = std::vector<const MeasuredAttention*>;

// Fewer rows than this determine nothing.
constexpr std::size_t kFewestRows = 5;
// Weight of |log(constant / start)| beside the mean error: a constant moves only where it gains more.
constexpr double kPull = 0.001;
// Search: from each of these softmax widths so many steps, whose size shrinks by kShrink every kStepsPerSize.
constexpr std::array kWidthStarts = {30.0, 8.0, 120.0};
constexpr int kSteps = 12000;
constexpr int kStepsPerSize = 1000;
constexpr double kFirstSize = 0.4;
constexpr double kShrink = 0.65;
// Search of the shares of unfused attention: each in turn over a grid.
constexpr int kSharesPerUnit = 200;
constexpr int kRounds = 4;
constexpr std::int64_t kFullHeadDim = 128;  // see sim/kernels/attention.h

// One constant of the search; steps are taken in its logarithm.
struct Coordinate {
  v1::Constant* (v1::AttentionProfile::*constant)();
  double low;
  double high;
  double start;
  bool determined = false;
};
enum Index : std::size_t { kForward, kBackward, kHalf, kBackwardHalf, kWidth, kWide, kCausal, kCoordinates };
using Coordinates = std::array<Coordinate, kCoordinates>;

Coordinates AllCoordinates() {
  using P = v1::AttentionProfile;
  return {Coordinate{&P::mutable_forward_efficiency, 0.01, 1, 0.6},
          Coordinate{&P::mutable_backward_efficiency, 0.01, 1, 0.5},
          Coordinate{&P::mutable_half_length, 1, 2000, 150},
          Coordinate{&P::mutable_backward_half_length, 1, 4000, 400},
          Coordinate{&P::mutable_softmax_width, 1, 512, kWidthStarts[0]},
          Coordinate{&P::mutable_wide_factor, 0.2, 1.8, 1},
          Coordinate{&P::mutable_causal_efficiency, 0.3, 1, 0.95}};
}

double Value(const Coordinate& coordinate, v1::AttentionProfile& profile) {
  return (profile.*coordinate.constant)()->value();
}
void Set(const Coordinate& coordinate, double value, v1::AttentionProfile* profile) {
  (profile->*coordinate.constant)()->set_value(std::clamp(value, coordinate.low, coordinate.high));
}

double AbsLog(double ratio) { return std::fabs(Log(ratio)); }

ErrorSummary ErrorsOf(const Rows& rows, const std::function<double(const MeasuredAttention&)>& seconds) {
  std::vector<double> errors;
  for (const MeasuredAttention* row : rows) errors.push_back(seconds(*row) / row->seconds - 1);
  return SummariseErrors(errors);
}

// Which constants the rows can tell from each other.
void Determine(const Rows& rows, Coordinates* coordinates, std::vector<std::string>* undetermined) {
  std::set<std::int64_t> lengths[2];  // by direction
  std::set<std::int64_t> narrow;
  bool wide = false;
  bool masks[2] = {false};
  for (const MeasuredAttention* row : rows) {
    if (row->forward) lengths[0].insert(row->attention.q);
    if (row->backward) lengths[1].insert(row->attention.q);
    if (row->attention.head_dim <= kFullHeadDim) narrow.insert(row->attention.head_dim);
    wide = wide || row->attention.head_dim > kFullHeadDim;
    masks[row->attention.causal ? 1 : 0] = true;
  }
  const auto decide = [&](Index index, bool determined, const char* name, const char* why) {
    (*coordinates)[index].determined = determined;
    if (!determined) undetermined->push_back(absl::StrCat(name, ": ", why));
  };
  decide(kForward, !lengths[0].empty(), "forward_efficiency", "no forward rows");
  decide(kBackward, !lengths[1].empty(), "backward_efficiency", "no backward rows; its ratio to forward is kept");
  decide(kHalf, lengths[0].size() > 1, "half_length", "one forward length");
  decide(kBackwardHalf, lengths[1].size() > 1, "backward_half_length",
         "less than two backward lengths; its ratio to forward is kept");
  decide(kWidth, narrow.size() > 1, "softmax_width", "less than two head dimensions up to 128");
  decide(kWide, wide && !narrow.empty(), "wide_factor", "no head dimensions on both sides of 128");
  decide(kCausal, masks[0] && masks[1], "causal_efficiency", "not measured with and without a mask");
}

// Constants of the backward pass without rows follow the forward ones.
void KeepRatios(const Coordinates& coordinates, v1::AttentionProfile base, v1::AttentionProfile* profile) {
  for (const auto& [backward, forward] : {std::pair{kBackward, kForward}, {kBackwardHalf, kHalf}}) {
    const double before = Value(coordinates[forward], base);
    if (coordinates[backward].determined || before <= 0) continue;
    const double ratio = Value(coordinates[backward], base) / before;
    Set(coordinates[backward], ratio * Value(coordinates[forward], *profile), profile);
  }
}

// An entry's prices for the operand types that it serves.
class Pricer {
 public:
  Pricer(const v1::Accelerator& accelerator, const v1::AttentionProfile& profile)
      : floor_(accelerator.profile().kernel_floor().value()) {
    for (const int type : profile.data_types()) {
      const FlopsPerSecond peak = PeakOf(accelerator, static_cast<v1::DataType>(type));
      if (peak.count() > 0) models_[static_cast<std::size_t>(type)].emplace(profile, accelerator.sms(), peak);
    }
  }

  bool Serves(v1::DataType type) const { return models_[static_cast<std::size_t>(type)].has_value(); }
  double Seconds(const MeasuredAttention& row) const {
    return FusedAttentionSeconds(*models_[static_cast<std::size_t>(row.data_type)], floor_, row);
  }

 private:
  double floor_;
  std::array<std::optional<kernels::AttentionModel>, v1::DataType_ARRAYSIZE> models_;
};

double Objective(const v1::Accelerator& accelerator, const Rows& rows, const Coordinates& coordinates,
                 v1::AttentionProfile& profile) {
  const Pricer pricer(accelerator, profile);
  double errors = 0;
  for (const MeasuredAttention* row : rows) errors += AbsLog(pricer.Seconds(*row) / row->seconds);
  double moved = 0;
  for (const Coordinate& coordinate : coordinates) {
    if (coordinate.determined) moved += AbsLog(Value(coordinate, profile) / coordinate.start);
  }
  return errors / static_cast<double>(rows.size()) + kPull * moved;
}

v1::AttentionProfile Search(const v1::Accelerator& accelerator, const Rows& rows, const Coordinates& coordinates,
                            const v1::AttentionProfile& base) {
  std::vector<const Coordinate*> free;
  for (const Coordinate& coordinate : coordinates) {
    if (coordinate.determined) free.push_back(&coordinate);
  }
  v1::AttentionProfile best = base;
  double lowest = std::numeric_limits<double>::infinity();
  for (std::size_t start = 0; start < kWidthStarts.size(); ++start) {
    v1::AttentionProfile here = base;
    for (const Coordinate* coordinate : free) Set(*coordinate, coordinate->start, &here);
    if (coordinates[kWidth].determined) Set(coordinates[kWidth], kWidthStarts[start], &here);
    double value = Objective(accelerator, rows, coordinates, here);
    double size = kFirstSize;
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      if (step > 0 && step % kStepsPerSize == 0) size *= kShrink;
      // Every other step moves all constants at once: they trade against each other along narrow valleys.
      const bool together = step % 2 == 1;
      const std::size_t alone = HashCombine(start, step) % free.size();
      v1::AttentionProfile there = here;
      for (std::size_t i = 0; i < free.size(); ++i) {
        if (!together && i != alone) continue;
        const double by = (together ? size / 2 : size) * StandardNormal(HashCombine(start, step), i);
        Set(*free[i], Value(*free[i], here) * Exp(by), &there);
      }
      const double moved = Objective(accelerator, rows, coordinates, there);
      if (moved >= value) continue;
      value = moved;
      here = there;
    }
    if (value >= lowest) continue;
    lowest = value;
    best = here;
  }
  return best;
}

void RoundAll(const Coordinates& coordinates, v1::AttentionProfile* profile) {
  for (const Coordinate& coordinate : coordinates) Set(coordinate, Rounded(Value(coordinate, *profile)), profile);
}

std::string Source(const ErrorSummary& fitted, const ErrorSummary& held_out) {
  std::string text = absl::StrCat("attention fit: ", fitted.rows, " rows, median error ", FormatPercent(fitted.median));
  if (held_out.rows > 0) {
    absl::StrAppend(&text, "; ", held_out.rows, " held out, ", FormatPercent(held_out.median));
  }
  return text;
}

// Rows of the fit and those kept out of it.
struct Sides {
  Rows fitted;
  Rows held_out;
};
Sides SplitRows(const std::vector<MeasuredAttention>& rows,
                const std::function<bool(const MeasuredAttention&)>& wanted) {
  Sides split;
  for (const MeasuredAttention& row : rows) {
    if (!wanted(row)) continue;
    (IsHeldOut(row) ? split.held_out : split.fitted).push_back(&row);
  }
  return split;
}

}  // namespace

bool IsHeldOut(const MeasuredAttention& row) {
  return HeldOut(absl::StrCat(row.source, ",", row.attention.head_dim, ",", row.attention.q));
}

v1::AttentionProfile FitAttention(const v1::Accelerator& accelerator, const v1::AttentionProfile& base,
                                  const std::vector<MeasuredAttention>& rows, AttentionFit* fit) {
  std::vector<std::string> types;
  for (const int type : base.data_types()) types.push_back(v1::DataType_Name(static_cast<v1::DataType>(type)));
  fit->name = absl::StrCat(v1::AttentionKernel_Name(base.kernel()), " ", absl::StrJoin(types, " "));
  const Pricer before(accelerator, base);
  const Sides split = SplitRows(rows, [&](const MeasuredAttention& row) {
    return row.attention.kernel == base.kernel() && before.Serves(row.data_type);
  });
  v1::AttentionProfile profile = base;
  Coordinates coordinates = AllCoordinates();
  if (split.fitted.size() >= kFewestRows) {
    Determine(split.fitted, &coordinates, &fit->undetermined);
    profile = Search(accelerator, split.fitted, coordinates, base);
    // Ratios of what the profile will say: then they stay the same when it is calibrated again.
    RoundAll(coordinates, &profile);
    KeepRatios(coordinates, base, &profile);
    RoundAll(coordinates, &profile);
  } else {
    fit->undetermined.push_back(absl::StrCat("all: ", split.fitted.size(), " rows, of ", kFewestRows, " needed"));
  }
  const Pricer after(accelerator, profile);
  const auto seconds = [&](const MeasuredAttention& row) { return after.Seconds(row); };
  fit->fitted = ErrorsOf(split.fitted, seconds);
  fit->held_out = ErrorsOf(split.held_out, seconds);
  for (const Coordinate& coordinate : coordinates) {
    if (coordinate.determined) (profile.*coordinate.constant)()->set_source(Source(fit->fitted, fit->held_out));
  }
  return profile;
}

v1::MemoryBoundProfile FitUnfusedAttention(const v1::Accelerator& accelerator,
                                           const std::vector<MeasuredAttention>& rows, AttentionFit* fit) {
  fit->name = v1::AttentionKernel_Name(v1::UNFUSED);
  v1::Accelerator trial = accelerator;
  v1::MemoryBoundProfile* profile = trial.mutable_profile()->mutable_memory_bound();
  const auto seconds = [&](const MeasuredAttention& row) {
    const absl::StatusOr<double> predicted = PredictAttention(trial, row);
    return predicted.ok() ? *predicted : 0.0;
  };
  const auto usable = [&](const MeasuredAttention& row) {
    return row.attention.kernel == v1::UNFUSED && PredictAttention(accelerator, row).ok();
  };
  const Sides split = SplitRows(rows, usable);
  // The share, in steps of 0.005, with the lowest mean error.
  const auto search = [&](v1::Constant* share) {
    double lowest = 0;
    double best = 0;
    for (int i = 1; i < kSharesPerUnit; ++i) {
      share->set_value(static_cast<double>(i) / kSharesPerUnit);
      double error = 0;
      for (const MeasuredAttention* row : split.fitted) error += AbsLog(seconds(*row) / row->seconds);
      if (best > 0 && error >= lowest) continue;
      lowest = error;
      best = share->value();
    }
    share->set_value(best);
  };
  const bool determined = split.fitted.size() >= kFewestRows;
  if (determined) {
    for (int round = 0; round < kRounds; ++round) {
      search(profile->mutable_softmax());
      search(profile->mutable_strided());
    }
  } else {
    fit->undetermined.push_back(
        absl::StrCat("softmax, strided: ", split.fitted.size(), " rows, of ", kFewestRows, " needed"));
  }
  fit->fitted = ErrorsOf(split.fitted, seconds);
  fit->held_out = ErrorsOf(split.held_out, seconds);
  if (determined) {
    const std::string source = absl::StrCat("unfused ", Source(fit->fitted, fit->held_out));
    profile->mutable_softmax()->set_source(source);
    profile->mutable_strided()->set_source(source);
  }
  return *profile;
}

std::vector<AttentionFit> CalibrateAttention(const std::vector<MeasuredAttention>& rows, v1::Accelerator* accelerator) {
  std::vector<AttentionFit> fits;
  for (v1::AttentionProfile& entry : *accelerator->mutable_profile()->mutable_attention()) {
    entry = FitAttention(*accelerator, entry, rows, &fits.emplace_back());
  }
  *accelerator->mutable_profile()->mutable_memory_bound() =
      FitUnfusedAttention(*accelerator, rows, &fits.emplace_back());
  return fits;
}

}  // namespace orrery::calibration
