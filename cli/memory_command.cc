#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "cli/terminal_progress.h"
#include "reports/fit_advice.h"
#include "reports/memory_report.h"
#include "sim/training/simulate.h"

namespace orrery::cli {

int Memory(const MemoryArguments& arguments) {
  const absl::StatusOr<spec::LoadedRun> loaded =
      spec::LoadRun(arguments.spec.spec, LoadOptionsOf(arguments.spec.spec_path, arguments.spec.overrides));
  if (!loaded.ok()) return Fail(loaded.status());
  std::vector<std::string> inputs = loaded->files;
  inputs.push_back(arguments.spec.spec);
  if (const absl::Status files = CheckNotRead("--output", arguments.output, inputs); !files.ok()) return Fail(files);
  for (const std::string& warning : loaded->warnings) Warn(warning);
  const absl::StatusOr<training::Result> result = training::Simulate(loaded->run);
  if (!result.ok()) return Fail(result.status());
  for (const std::string& warning : result->warnings) {
    if (result->Fits()) Warn(warning);  // that it does not fit is the report's subject
  }
  // As if the user had given these overrides after the own ones.
  const reports::Reload reload = [&](const std::vector<std::string>& overrides) -> absl::StatusOr<v1::Run> {
    std::vector<std::string> all = arguments.spec.overrides;
    all.insert(all.end(), overrides.begin(), overrides.end());
    const absl::StatusOr<spec::LoadedRun> changed =
        spec::LoadRun(arguments.spec.spec, LoadOptionsOf(arguments.spec.spec_path, all));
    if (!changed.ok()) return changed.status();
    return changed->run;
  };
  TerminalProgress progress;
  const reports::FitAdvice advice = reports::Advise(*result, reload, progress);
  const std::string text =
      arguments.json ? reports::MemoryReportJson(*result, advice) : reports::MemoryReportText(*result, advice);
  const absl::Status written = Write(text, arguments.output);
  if (!written.ok()) return Fail(written);
  return result->Fits() ? kDone : kAnswerIsNo;
}

}  // namespace orrery::cli
