// Chimera: D copies of the model, half of them down the ranks and half up, starting at evenly spaced ranks.
//
// The order comes from a table with a slot for every pass, forward or backward. A *wave* is what one unit of p
// micro-batches, p / D per copy, does in one direction: micro-batch k of a copy enters at slot 2k and moves on by one
// rank per slot. No two of its passes meet, for neither parity nor distance of the starts allows it. Waves follow each
// other, forward and backward of each unit in turn, and the beginning of each is merged into the idle slots of the
// second half of the wave before: "direct concatenation".
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/families.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "chimera";

std::int32_t Copies(const Parameters& parameters) { return parameters.pipelines > 0 ? parameters.pipelines : 2; }

absl::Status Check(const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckOneStagePerRank(kName, parameters));
  const std::int32_t p = parameters.ranks;
  const std::int32_t d = Copies(parameters);
  const auto error = [](const auto&... text) { return absl::InvalidArgumentError(absl::StrCat("chimera: ", text...)); };
  if (parameters.pipelines < 0 || d < 2 || (d & (d - 1)) != 0) {
    return error("pipelines = ", parameters.pipelines, ", allowed: powers of 2 from 2");
  }
  if (p % d != 0) return error("ranks = ", p, ", allowed: multiples of pipelines (", d, ")");
  if (parameters.micro_batches % p != 0) {
    return error("micro_batches = ", parameters.micro_batches, ", allowed: multiples of ranks (", p, ")");
  }
  return absl::OkStatus();
}

// Where the stages of copy `copy` are: stage s on rank (start + step s) mod p.
struct Course {
  std::int32_t start = 0;
  std::int32_t step = 1;
};

Course CourseOf(std::int32_t copy, std::int32_t copies, std::int32_t ranks) {
  const std::int32_t half = copies / 2;
  if (copy < half) return {copy * (ranks / half), 1};
  return {ranks - 1 - (copy - half) * (ranks / half), -1};
}

std::int32_t RankOf(const Course& course, std::int32_t stage, std::int32_t ranks) {
  return (course.start + course.step * stage + ranks) % ranks;
}

// An action, or an idle slot; of a rank in a slot.
struct Cell {
  bool idle = true;
  Action action;
};
using Column = std::vector<Cell>;  // of all ranks in a slot
using Table = std::vector<Column>;

struct Sizes {
  std::int32_t ranks;
  std::int32_t copies;
  std::int32_t micro_batches;
};

// Of the micro-batches first, first + 1, ... of every copy.
Table Wave(ActionKind kind, const Sizes& sizes, std::int32_t first) {
  const std::int32_t p = sizes.ranks;
  const std::int32_t per_copy = p / sizes.copies;
  Table wave(static_cast<std::size_t>(p + 2 * (per_copy - 1)), Column(static_cast<std::size_t>(p)));
  for (std::int32_t copy = 0; copy < sizes.copies; ++copy) {
    const Course course = CourseOf(copy, sizes.copies, p);
    for (std::int32_t k = 0; k < per_copy; ++k) {
      const std::int32_t micro_batch = copy * (sizes.micro_batches / sizes.copies) + first + k;
      for (std::int32_t i = 0; i < p; ++i) {
        const std::int32_t stage = kind == ActionKind::kForward ? i : p - 1 - i;
        wave[static_cast<std::size_t>(2 * k + i)][static_cast<std::size_t>(RankOf(course, stage, p))] = {
            false, {kind, copy, micro_batch}};
      }
    }
  }
  return wave;
}

bool SameRanksIdle(const Column& a, const Column& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](const Cell& x, const Cell& y) { return x.idle == y.idle; });
}

// Moves the actions of `from` into the idle slots of `into`; whether there were any.
bool Fill(Column& into, const Column& from) {
  bool filled = false;
  for (std::size_t rank = 0; rank < into.size(); ++rank) {
    if (!into[rank].idle || from[rank].idle) continue;
    into[rank] = from[rank];
    filled = true;
  }
  return filled;
}

// Puts `wave` before `later`, which is stored last column first. Columns that keep the same ranks idle go in pairs, in
// either: a pair of a wave that is filled is followed by the second column of the pair that filled it.
void Prepend(Table wave, Table& later) {
  Table front;
  std::size_t i = 0;
  while (i < wave.size() / 2) front.push_back(std::move(wave[i++]));
  while (i < wave.size()) {
    const bool pair = i + 1 < wave.size() && SameRanksIdle(wave[i], wave[i + 1]);
    const bool later_pair = later.size() >= 2 && SameRanksIdle(later[later.size() - 1], later[later.size() - 2]);
    const bool filled = !later.empty() && Fill(wave[i], later.back());
    front.push_back(std::move(wave[i++]));
    if (pair) front.push_back(std::move(wave[i++]));
    if (!filled) continue;
    later.pop_back();
    if (!later_pair) continue;
    front.push_back(std::move(later.back()));
    later.pop_back();
  }
  std::move(front.rbegin(), front.rend(), std::back_inserter(later));
}

absl::StatusOr<Placement> PlaceCopies(const Sizes& sizes) {
  std::vector<std::vector<Held>> held(static_cast<std::size_t>(sizes.ranks));
  for (std::int32_t copy = 0; copy < sizes.copies; ++copy) {
    const Course course = CourseOf(copy, sizes.copies, sizes.ranks);
    for (std::int32_t stage = 0; stage < sizes.ranks; ++stage) {
      held[static_cast<std::size_t>(RankOf(course, stage, sizes.ranks))].push_back({stage, copy});
    }
  }
  return Placement::Of(std::move(held));
}

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const Sizes sizes = {parameters.ranks, Copies(parameters), parameters.micro_batches};
  const std::int32_t unit = sizes.ranks / sizes.copies;
  const std::int32_t per_copy = sizes.micro_batches / sizes.copies;
  Table reversed;
  for (std::int32_t first = per_copy - unit; first >= 0; first -= unit) {
    Prepend(Wave(ActionKind::kBackward, sizes, first), reversed);
    Prepend(Wave(ActionKind::kForward, sizes, first), reversed);
  }

  Schedule schedule;
  ABSL_ASSIGN_OR_RETURN(schedule.placement, PlaceCopies(sizes));
  schedule.micro_batches = sizes.micro_batches;
  for (std::int32_t k = 0; k < sizes.micro_batches; ++k) schedule.pipeline_of.push_back(k / per_copy);
  schedule.order.resize(static_cast<std::size_t>(sizes.ranks));
  schedule.slots.resize(static_cast<std::size_t>(sizes.ranks));
  for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
    for (std::size_t i = 0; i < reversed.size(); ++i) {
      const Cell& cell = reversed[reversed.size() - 1 - i][rank];
      if (cell.idle) continue;
      schedule.order[rank].push_back(cell.action);
      schedule.slots[rank].push_back(static_cast<std::int32_t>(i));
    }
  }
  return schedule;
}

}  // namespace

const Family kChimera = {
    kName,
    "Copies of the model run down and up the ranks at once, each filling the bubbles of the others.",
    "Li and Hoefler, Chimera, SC 2021 (arXiv 2107.06925), section 3; direct concatenation as in Ascend/MindSpeed",
    "one stage per rank and copy; pipelines a power of 2 from 2 (default 2), ranks a multiple of it, micro-batches a "
    "multiple of ranks",
    "with D pipelines: idle 2(p/D-1)max(F, B) for m = p, and for F = B with any m; peak p, and "
    "p - p/D + 1 where a pipeline begins",
    &Check,
    &GenerateOrder,
    /*fixed_chunks=*/1,
    /*automatic=*/false,
    /*default_chunks=*/1,
    /*sliced=*/false,
    /*takes_pipelines=*/true,
};

}  // namespace orrery::schedules
