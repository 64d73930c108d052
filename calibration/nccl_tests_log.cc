#include "calibration/nccl_tests_log.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "sim/collectives/nccl/model.h"

namespace orrery::calibration {
namespace {

namespace nccl = collectives::nccl;

constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;
constexpr std::size_t kGroup = 4;                // time, algbw, busbw, #wrong
constexpr std::size_t kFewest = 3 + 2 * kGroup;  // size, count, type before them
constexpr double kRounding = 0.02;               // of algbw and time as printed
constexpr std::size_t kMostProblems = 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

template <typename Number>
std::optional<Number> Parse(absl::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// What stands behind `key` in a line, up to the next space; "" without it.
std::string_view Behind(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return "";
  std::string_view rest = line.substr(at + key.size());
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
  return rest.substr(0, rest.find_first_of(" +\t\r"));
}

class Reader {
 public:
  void Line(std::string_view line, int number) {
    Header(line);
    const std::vector<absl::string_view> words =
        absl::StrSplit(absl::string_view(line.data(), line.size()), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    const bool row = words.size() >= kFewest && Parse<std::int64_t>(words[0]).has_value() &&
                     Parse<std::int64_t>(words[1]).has_value() && !Parse<double>(words[2]).has_value();
    if (!row) {
      ++log_.skipped;
      return;
    }
    Row(words, number);
  }

  NcclTestsLog Finish() {
    log_.hosts = static_cast<std::int64_t>(hosts_.size());
    return std::move(log_);
  }

 private:
  void Header(std::string_view line) {
    const std::size_t program = line.find("_perf");
    if (program != std::string_view::npos && !log_.operation.has_value()) {
      std::size_t begin = program;
      while (begin > 0 && (std::isalpha(static_cast<unsigned char>(line[begin - 1])) != 0 || line[begin - 1] == '_')) {
        --begin;
      }
      const absl::StatusOr<nccl::Operation> found = nccl::OperationOf(line.substr(begin, program - begin));
      if (found.ok()) log_.operation = *found;
    }
    if (log_.version.empty()) log_.version = std::string(Behind(line, "NCCL version "));
    const auto threads = Parse<std::int64_t>(Text(Behind(line, "nThread ")));
    const auto gpus = Parse<std::int64_t>(Text(Behind(line, "nGpus ")));
    if (threads.has_value() && gpus.has_value()) log_.gpus_per_process = std::max<std::int64_t>(1, *threads * *gpus);
    const std::string_view rank = Behind(line, "Rank ");
    if (!rank.empty() && line.find(" Pid ") != std::string_view::npos) {
      if (const auto number = Parse<std::int64_t>(Text(rank)); number.has_value()) {
        log_.ranks = std::max(log_.ranks, *number + 1);
        hosts_.insert(std::string(Behind(line, " on ")));
      }
    }
  }

  void Row(const std::vector<absl::string_view>& words, int number) {
    NcclTestsRow row{.line = number, .bytes = *Parse<std::int64_t>(words[0])};
    const auto problem = [&](std::string_view what) {
      if (log_.problems.size() < kMostProblems) {
        log_.problems.push_back(absl::StrCat("line ", number, ": ", std::string(what)));
      }
    };
    const std::size_t first = words.size() - 2 * kGroup;
    const auto out = Parse<double>(words[first]), in = Parse<double>(words[first + kGroup]);
    const auto rate = Parse<double>(words[first + 1]);
    if (!out.has_value() || !in.has_value() || !rate.has_value()) return problem("time or algbw is no number");
    if (row.bytes < 1 || row.bytes > kMostBytes) return problem("size; allowed: 1 byte to 1 PiB");
    if (!(*out > 0) || !(*in > 0) || !std::isfinite(*out) || !std::isfinite(*in)) {
      return problem("time; allowed: above 0");
    }
    const double implied = static_cast<double>(row.bytes) / (*out * kMicro) / kGiga;
    if (std::fabs(implied - *rate) > kRounding * implied + 0.01) {
      return problem(absl::StrCat("algbw ", *rate, " is not size / time, ", implied));
    }
    row.out_of_place = *out * kMicro;
    row.in_place = *in * kMicro;
    log_.rows.push_back(row);
  }

  static absl::string_view Text(std::string_view text) { return {text.data(), text.size()}; }

  NcclTestsLog log_;
  std::set<std::string> hosts_;
};

}  // namespace

absl::StatusOr<NcclTestsLog> ParseNcclTestsLog(std::string_view text, std::string_view name) {
  Reader reader;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.Line(text.substr(0, end), ++number);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  NcclTestsLog log = reader.Finish();
  if (!log.rows.empty()) return log;
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(name), ": no row of nccl-tests",
                   log.problems.empty() ? std::string() : absl::StrCat("; ", log.problems.front())));
}

}  // namespace orrery::calibration
