#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/terminal_progress.h"
#include "sweep/ranking.h"
#include "sweep/resume.h"
#include "sweep/sweep.h"
#include "validation/expected_error.h"

namespace orrery::cli {
namespace {

constexpr std::int64_t kMostListBytes = 256 << 20;
constexpr std::int64_t kMostRowBytes = std::int64_t{4} << 30;

// What is written must not be what is read.
absl::Status CheckFiles(const SweepArguments& arguments, const spec::BaseRun& base, const sweep::Points& points) {
  std::vector<std::string> inputs = base.Files();
  const std::vector<std::string> varied = points.Files();
  inputs.insert(inputs.end(), varied.begin(), varied.end());
  inputs.insert(inputs.end(), {arguments.spec.spec, arguments.list});
  return CheckNotRead("--output", arguments.output, inputs);
}

absl::StatusOr<sweep::Points> PointsOf(const SweepArguments& arguments, const spec::BaseRun& base) {
  std::vector<sweep::Axis> axes;
  if (!arguments.list.empty()) {
    ABSL_ASSIGN_OR_RETURN(const std::string text, ReadFile(arguments.list, kMostListBytes));
    ABSL_ASSIGN_OR_RETURN(sweep::Axis axis, sweep::ParseList(text, arguments.list));
    axes.push_back(std::move(axis));
  }
  for (const std::string& vary : arguments.vary) {
    ABSL_ASSIGN_OR_RETURN(sweep::Axis axis, sweep::ParseVary(vary));
    axes.push_back(std::move(axis));
  }
  ABSL_ASSIGN_OR_RETURN(sweep::Points points, sweep::Points::Make(std::move(axes)));
  ABSL_RETURN_IF_ERROR(points.Check(base));
  return points;
}

// Where the rows go: standard output or a file, a whole row at a time.
class RowFile {
 public:
  ~RowFile() { Close().IgnoreError(); }

  // Of a file the first `kept` bytes stay, and the rows go behind them.
  absl::Status Open(const std::string& path, std::size_t kept) {
    path_ = path;
    if (path.empty()) {
      file_ = stdout;
      return absl::OkStatus();
    }
    std::error_code error;
    if (kept > 0) std::filesystem::resize_file(path, kept, error);
    if (error) return SystemError(path, error.value(), "write");
    file_ = std::fopen(path.c_str(), kept > 0 ? "ab" : "wb");
    return file_ != nullptr ? absl::OkStatus() : Error();
  }

  absl::Status Write(const std::string& text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0;
    return written ? absl::OkStatus() : Error();
  }

  absl::Status Close() {
    std::FILE* const file = std::exchange(file_, nullptr);
    if (file == nullptr || file == stdout || std::fclose(file) == 0) return absl::OkStatus();
    return Error();
  }

 private:
  // Of the call that just failed.
  absl::Status Error() const { return SystemError(path_.empty() ? "standard output" : path_, errno, "write"); }

  std::string path_;
  std::FILE* file_ = nullptr;
};

// Rows of an earlier, interrupted sweep in the output file; none where there is no such file.
absl::StatusOr<sweep::Done> DoneBefore(const SweepArguments& arguments, const sweep::Table& table,
                                       const sweep::Points& points, sweep::Ranking* ranking) {
  if (!arguments.resume) return sweep::Done{};
  const absl::StatusOr<std::string> contents = ReadFile(arguments.output, kMostRowBytes);
  if (absl::IsNotFound(contents.status())) return sweep::Done{};
  if (!contents.ok()) return contents.status();
  absl::StatusOr<sweep::Done> done =
      sweep::ReadRows(*contents, table, points, [&](const sweep::Row& row) { ranking->Add(row); });
  if (done.ok()) return done;
  return absl::InvalidArgumentError(
      absl::StrCat("--resume: ", arguments.output, ": ", absl::string_view(done.status().message())));
}

using ExpectedError = std::function<std::optional<std::pair<double, double>>(const v1::Run&)>;

absl::StatusOr<ExpectedError> ExpectedErrors(const SweepArguments& arguments) {
  const spec::LoadOptions options = LoadOptionsOf(arguments.spec.spec_path, {});
  ABSL_ASSIGN_OR_RETURN(v1::ExpectedErrors errors, validation::LoadExpectedErrors(options.spec_path));
  const auto shared = std::make_shared<const v1::ExpectedErrors>(std::move(errors));
  return ExpectedError([shared](const v1::Run& run) -> std::optional<std::pair<double, double>> {
    const std::optional<v1::ExpectedError> family =
        validation::ExpectedErrorOf(*shared, run.software().name(), run.cluster().accelerator().name());
    if (!family.has_value()) return std::nullopt;
    return std::pair(family->p50(), family->p90());
  });
}

// Writes the rows that are still to come; CANCELLED where a signal came first.
absl::Status WriteRows(const SweepArguments& arguments, const spec::BaseRun& base, const sweep::Points& points,
                       const ExpectedError& expected_error, const sweep::Table& table, sweep::Ranking* ranking) {
  ABSL_ASSIGN_OR_RETURN(const sweep::Done done, DoneBefore(arguments, table, points, ranking));
  RowFile file;
  ABSL_RETURN_IF_ERROR(file.Open(arguments.output, done.bytes));
  if (done.bytes == 0) ABSL_RETURN_IF_ERROR(file.Write(table.Header()));
  TerminalProgress progress;
  progress.Start("sweep", points.size());
  progress.Advance(done.rows);
  const sweep::Options options{.threads = arguments.threads > 0 ? arguments.threads : HardwareThreads(),
                               .first = done.rows,
                               .stopped = [] { return Interrupted() != 0; },
                               .expected_error = expected_error};
  ABSL_RETURN_IF_ERROR(sweep::RunPoints(base, points, options, [&](const sweep::Row& row) {
    ranking->Add(row);
    absl::Status written = file.Write(table.Line(row));
    progress.Advance(1);
    return written;
  }));
  return file.Close();
}

// Answers of a point are those of its spec, its presets and this version.
std::string IdOf(const spec::BaseRun& base, const sweep::Points& points) {
  constexpr std::size_t kDigits = 16;
  return Sha256Hex(absl::StrCat(ORRERY_VERSION, " ", points.Sha256(base))).substr(0, kDigits);
}

int Interrupt(const SweepArguments& arguments, const absl::Status& status) {
  Warn(absl::StrCat(absl::string_view(status.message()),
                    arguments.output.empty() ? "" : "; the same command with --resume goes on"));
  return InterruptedCode();
}

}  // namespace

int Sweep(const SweepArguments& arguments) {
  if (arguments.resume && arguments.output.empty()) {
    return Fail(absl::InvalidArgumentError("--resume: there is no file to go on with; allowed: with -o FILE"));
  }
  const absl::StatusOr<spec::BaseRun> base =
      spec::BaseRun::Read(arguments.spec.spec, LoadOptionsOf(arguments.spec.spec_path, arguments.spec.overrides));
  if (!base.ok()) return Fail(base.status());
  const absl::StatusOr<sweep::Points> points = PointsOf(arguments, *base);
  if (!points.ok()) return FailOnOneLine(points.status());
  if (const absl::Status files = CheckFiles(arguments, *base, *points); !files.ok()) return FailOnOneLine(files);
  const absl::StatusOr<ExpectedError> expected_error = ExpectedErrors(arguments);
  if (!expected_error.ok()) return Fail(expected_error.status());
  const sweep::Table table(points->fields(), IdOf(*base, *points),
                           arguments.json ? sweep::Format::kJson : sweep::Format::kCsv);
  sweep::Ranking ranking(static_cast<std::size_t>(arguments.top));
  CatchInterrupts();
  const absl::Status status = WriteRows(arguments, *base, *points, *expected_error, table, &ranking);
  if (!status.ok() && !absl::IsCancelled(status)) return FailOnOneLine(status);
  const std::string summary = PrintableLines(ranking.Text(points->fields()));
  std::fwrite(summary.data(), 1, summary.size(), stderr);
  if (absl::IsCancelled(status)) return Interrupt(arguments, status);
  return ranking.ok() > 0 ? kDone : kAnswerIsNo;
}

}  // namespace orrery::cli
