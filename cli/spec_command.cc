#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "proto/loader.h"

namespace orrery::cli {
namespace {

int WriteOrFail(const std::string& text, const std::string& output) {
  const absl::Status written = Write(text, output);
  return written.ok() ? kDone : Fail(written);
}

}  // namespace

int SpecList(const SpecListArguments& arguments) {
  const spec::LoadOptions options = LoadOptionsOf(arguments.spec_path, {});
  std::string text;
  for (const std::string& kind : arguments.kind.empty() ? spec::PresetKinds() : std::vector{arguments.kind}) {
    const absl::StatusOr<std::vector<std::string>> names = spec::ListPresets(kind, options);
    if (!names.ok()) return Fail(names.status());
    absl::StrAppend(&text, kind, "\n");
    for (const std::string& name : *names) absl::StrAppend(&text, "  ", name, "\n");
  }
  return WriteOrFail(text, "");
}

int SpecNew(const std::string& output) { return WriteOrFail(spec::NewRunText(), output); }

int SpecCheck(const SpecArguments& arguments) {
  const absl::StatusOr<spec::LoadedRun> loaded =
      spec::LoadRun(arguments.spec, LoadOptionsOf(arguments.spec_path, arguments.overrides));
  if (!loaded.ok()) return Fail(loaded.status());
  for (const std::string& warning : loaded->warnings) Warn(warning);
  return WriteOrFail(absl::StrCat(arguments.spec, ": ok, spec ", loaded->sha256, "\n"), "");
}

int SpecResolve(const SpecArguments& arguments, const std::string& output) {
  const absl::StatusOr<spec::LoadedRun> loaded =
      spec::LoadRun(arguments.spec, LoadOptionsOf(arguments.spec_path, arguments.overrides));
  if (!loaded.ok()) return Fail(loaded.status());
  std::vector<std::string> inputs = loaded->files;
  inputs.push_back(arguments.spec);
  if (const absl::Status files = CheckNotRead("--output", output, inputs); !files.ok()) return Fail(files);
  return WriteOrFail(spec::ResolvedText(loaded->run), output);
}

}  // namespace orrery::cli
