#include "reports/summary.h"

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/text_table.h"
#include "base/utf8.h"
#include "reports/link_table.h"
#include "reports/memory_report.h"
#include "reports/time_classes.h"

namespace orrery::reports {
namespace {

using Align = TextTable::Align;

// The unit in which a run's times are printed, so that three decimals tell them apart.
struct Unit {
  std::string_view name;
  double per_second;

  static Unit Of(const training::Result& result) {
    return SecondsFromTime(result.iteration_time) >= 1 ? Unit{"seconds", 1} : Unit{"milliseconds", 1e3};
  }
  std::string Text(double seconds) const { return FormatFixed(seconds * per_second, 3); }
  std::string Text(Time time) const { return Text(SecondsFromTime(time)); }
  std::string WithSymbol(Time time) const { return absl::StrCat(Text(time), per_second == 1 ? " s" : " ms"); }
};

std::string NameOf(const std::string& name) { return name.empty() ? "(unnamed)" : Printable(name); }

std::string Heading(const training::Result& result) {
  const v1::Run& run = result.plan->run;
  const v1::Parallelism& parallelism = run.parallelism();
  std::string text = absl::StrCat(NameOf(run.name()), ": ", NameOf(run.model().name()), " on ",
                                  FormatCount(result.gpus), " x ", NameOf(run.cluster().accelerator().name()), "\n");
  absl::StrAppend(&text, "TP ", parallelism.tp(), ", PP ", parallelism.pp(), ", DP ", parallelism.dp(),
                  parallelism.sequence_parallel() ? ", sequence parallel" : "", ", ZeRO-", parallelism.zero_stage(),
                  "; schedule ", run.schedule().name());
  if (result.plan->chunks > 1) absl::StrAppend(&text, " with ", result.plan->chunks, " stages per rank");
  absl::StrAppend(&text, "; ", FormatCount(result.plan->micro_batches), " micro-batches of ",
                  run.training().micro_batch(), " x ", FormatCount(run.training().seq_len()), " tokens\n");
  return text;
}

std::string Headline(const training::Result& result) {
  const Unit unit = Unit::Of(result);
  const double seconds = SecondsFromTime(result.iteration_time);
  const v1::Run& run = result.plan->run;
  const std::string convention = absl::StrCat("convention \"", run.simulation().flops_convention(), "\", peak ",
                                              FormatFixed(result.peak.count() / 1e12, 1), " TFLOP/s");
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value, const std::string& note) {
    absl::StrAppend(&text, "  ", std::string(name), std::string(name.size() < 26 ? 26 - name.size() : 1, ' '), value,
                    note.empty() ? "" : "   ", note, "\n");
  };
  line("iteration time", unit.WithSymbol(result.iteration_time),
       absl::StrCat("first iteration ", unit.WithSymbol(result.first_iteration_time)));
  line("tokens/s", FormatCount(static_cast<std::int64_t>(result.tokens / seconds)),
       absl::StrCat(FormatFixed(result.tokens / seconds / static_cast<double>(result.gpus), 1), " per GPU"));
  line("MFU", FormatPercent(result.Mfu()), convention);
  line("HFU", FormatPercent(result.Hfu()), "with recomputed FLOPs");
  line("bubble", FormatPercent(result.Fraction(engine::TimeClass::kBubble)),
       absl::StrCat("of all rank-time; largest span bubble ", FormatPercent(result.span_bubble_fraction)));
  line("exposed communication", FormatPercent(result.ExposedCommunicationFraction()),
       absl::StrCat("tp ", FormatPercent(result.Fraction(engine::TimeClass::kExposedTp)), ", pp ",
                    FormatPercent(result.Fraction(engine::TimeClass::kExposedPp)), ", dp ",
                    FormatPercent(result.Fraction(engine::TimeClass::kExposedDp))));
  return text;
}

std::string TimeAccount(const training::Result& result) {
  const Unit unit = Unit::Of(result);
  TextTable table({{"where time goes", Align::kLeft},
                   {std::string(unit.name), Align::kRight},
                   {"share", Align::kRight},
                   {"", Align::kLeft}});
  for (const NamedTimeClass& named : TimeClasses()) {
    const double fraction = result.Fraction(named.time_class);
    if (fraction == 0) continue;
    table.AddRow({std::string(named.key), unit.Text(fraction * SecondsFromTime(result.iteration_time)),
                  FormatPercent(fraction), std::string(named.description)});
  }
  return table.Render();
}

std::string WaterfallTable(const training::Result& result, const Waterfall& waterfall) {
  const Unit unit = Unit::Of(result);
  TextTable table({{"from peak to achieved", Align::kLeft},
                   {std::string(unit.name), Align::kRight},
                   {"MFU points", Align::kRight},
                   {"MFU", Align::kRight},
                   {"", Align::kLeft}});
  double mfu = 1;
  const auto row = [&](std::string_view name, Time time, double points, std::string_view note) {
    mfu -= points;
    table.AddRow(
        {std::string(name), unit.Text(time), FormatFixed(-100 * points, 1), FormatPercent(mfu), std::string(note)});
  };
  const Time ideal =
      TimeFromSeconds(result.model_flops.count() / (static_cast<double>(result.gpus) * result.peak.count()));
  table.AddRow({"model FLOPs at peak", unit.Text(ideal), "", "100.0 %"});
  row("remainder", waterfall.remainder, waterfall.remainder_mfu,
      waterfall.remainder_note.empty() ? "uneven stages, FLOPs the convention leaves out" : waterfall.remainder_note);
  for (auto step = waterfall.steps.rbegin(); step != waterfall.steps.rend(); ++step) {
    row(step->name, step->time, step->mfu, step->note);
  }
  return table.Render();
}

}  // namespace

std::string Summary(const training::Result& result, const Waterfall& waterfall, const Provenance& provenance,
                    const SimulatorCost& cost) {
  const v1::Run& run = result.plan->run;
  const v1::Jitter& jitter = run.perturbation().jitter();
  std::string text = absl::StrCat(Heading(result), "\n", Headline(result), "\n", TimeAccount(result), "\n",
                                  WaterfallTable(result, waterfall), "\n", MemoryTable(result), "\n");
  if (result.links.has_value() && !result.links->links.empty()) {
    absl::StrAppend(&text, LinkTable(*result.links), "\n");
  }
  absl::StrAppend(&text, "computed from software level ", provenance.software, ", profile ", provenance.profile,
                  ", cluster ", run.cluster().name(),
                  jitter.mode() == v1::NO_JITTER
                      ? ", no jitter"
                      : absl::StrCat(jitter.mode() == v1::EXPECTED ? ", expected" : ", sampled", " jitter of ",
                                     FormatPercent(jitter.sigma(), 2)),
                  "; spec ", provenance.spec_sha256.substr(0, 12), ", orrery ", provenance.version, "\n");
  if (const std::optional<ExpectedError>& expected = provenance.expected_error; expected.has_value()) {
    absl::StrAppend(&text, "expected error of the iteration time ", FormatPercent(expected->p50), " (median), up to ",
                    FormatPercent(expected->p90), " (90th percentile), as on ", expected->runs, " published runs of ",
                    expected->family, "\n");
  }
  for (const std::string& warning : result.warnings) absl::StrAppend(&text, "warning: ", warning, "\n");
  absl::StrAppend(&text, "replayed ", result.iterations_replayed, " iterations",
                  result.periodic ? " until periodic" : "", ": ", FormatCount(result.tasks), " tasks of ",
                  FormatCount(result.ranks_simulated), " distinct ranks in ", FormatSeconds(cost.wall_seconds), "\n");
  if (result.links.has_value()) {
    absl::StrAppend(&text, FormatCount(result.links->transfers),
                    " transfers over links that others use: ", FormatCount(result.links->bypassed_solver),
                    " bypassed the solver of shared rates, ", FormatCount(result.links->never_slowed),
                    " were never slowed\n");
  }
  return text;
}

}  // namespace orrery::reports
