#include "calibration/nccl_tests_log.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
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
constexpr std::size_t kMost = 5 + 2 * kGroup;    // and redop, root
constexpr std::size_t kLongestPrefix = 4;        // words before a row: "[1,0]<stdout>:", "0:", a date and time
constexpr double kRounding = 0.02;               // of algbw and time as printed
constexpr std::size_t kMostProblems = 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

constexpr absl::string_view kHeading[] = {"size", "count", "type"};
constexpr absl::string_view kTypes[] = {"int8", "uint8", "int32",  "uint32",   "int64",  "uint64",
                                        "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};

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

// Of the library, as itself ("NCCL version 2.21.5+cuda12.4") and nccl-tests ("nccl-library=22105") print it; ""
// without.
std::string VersionIn(std::string_view line) {
  const std::string_view printed = Behind(line, "NCCL version ");
  if (!printed.empty()) return std::string(printed);
  const std::string_view library = Behind(line, "nccl-library=");
  const auto code = Parse<std::int64_t>({library.data(), library.size()});
  if (!code.has_value() || *code < 10000) return "";
  return absl::StrCat(*code / 10000, ".", *code / 100 % 100, ".", *code % 100);
}

class Reader {
 public:
  void Line(std::string_view line, int number) {
    Header(line, number);
    std::vector<absl::string_view> words =
        absl::StrSplit(absl::string_view(line.data(), line.size()), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (IsHeading(words)) in_table_ = true;
    if (!IsRow(&words)) {
      ++log_.skipped;
      return;
    }
    const std::string problem = Row(words, number);
    if (problem.empty()) return;
    ++log_.damaged;
    if (log_.problems.size() < kMostProblems) log_.problems.push_back(absl::StrCat("line ", number, ": ", problem));
  }

  const std::string& error() const { return error_; }

  // What is wrong with the list of ranks; empty: nothing, or there is none.
  std::string ProblemOfRanks() const {
    if (ranks_.empty()) return "";
    const std::int64_t last = ranks_.rbegin()->first;
    if (last + 1 != static_cast<std::int64_t>(ranks_.size())) {
      std::int64_t missing = 0;
      while (ranks_.contains(missing)) ++missing;
      return absl::StrCat("ranks up to ", last, " are listed, and rank ", missing,
                          " is not; allowed: a line for every rank");
    }
    for (const auto& [rank, listed] : ranks_) {
      if (listed.times == ranks_.begin()->second.times) continue;
      return absl::StrCat("rank ", rank, " is listed ", listed.times, " times, rank 0 ", ranks_.begin()->second.times,
                          "; allowed: every rank as often");
    }
    if ((last + 1) % log_.gpus_per_process != 0) {
      return absl::StrCat(last + 1, " ranks are listed, and a process has ", log_.gpus_per_process,
                          " (nThread x nGpus); allowed: a line for every rank of every process");
    }
    return "";
  }

  NcclTestsLog Finish() {
    std::set<std::string> hosts;
    for (const auto& [rank, listed] : ranks_) hosts.insert(listed.host);
    log_.hosts = static_cast<std::int64_t>(hosts.size());
    log_.ranks = static_cast<std::int64_t>(ranks_.size());
    return std::move(log_);
  }

 private:
  static bool IsHeading(const std::vector<absl::string_view>& words) {
    const auto names = std::search(words.begin(), words.end(), std::begin(kHeading), std::end(kHeading));
    return names != words.begin() && names != words.end();
  }

  // Takes what a launcher put before the row away.
  bool IsRow(std::vector<absl::string_view>* words) const {
    const auto whole = [&](std::size_t i) { return Parse<std::int64_t>((*words)[i]).has_value(); };
    const auto type = [&](std::size_t i) {
      const absl::string_view word = (*words)[i];
      if (in_table_ && std::isalpha(static_cast<unsigned char>(word[0])) != 0) return true;
      return std::find(std::begin(kTypes), std::end(kTypes), word) != std::end(kTypes);
    };
    for (std::size_t i = 0; i <= kLongestPrefix && i + 2 < words->size(); ++i) {
      if (!whole(i) || !whole(i + 1) || !type(i + 2)) continue;
      words->erase(words->begin(), words->begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    // Cut off before the type.
    return in_table_ && !words->empty() && words->size() < 3 && whole(0) && (words->size() == 1 || whole(1));
  }

  void Several(int number, const std::string& what, const std::string& before) {
    if (error_.empty()) {
      error_ = absl::StrCat("line ", number, ": ", what, " behind ", before, "; allowed: one per log");
    }
  }

  void Header(std::string_view line, int number) {
    const std::size_t program = line.find("_perf");
    if (program != std::string_view::npos) {
      std::size_t begin = program;
      while (begin > 0 && (std::isalpha(static_cast<unsigned char>(line[begin - 1])) != 0 || line[begin - 1] == '_')) {
        --begin;
      }
      const absl::StatusOr<nccl::Operation> found = nccl::OperationOf(line.substr(begin, program - begin));
      if (found.ok() && log_.operation.has_value() && *found != *log_.operation) {
        Several(number, nccl::OperationName(*found), nccl::OperationName(*log_.operation));
      }
      if (found.ok()) log_.operation = *found;
    }
    const std::string version = VersionIn(line);
    if (!version.empty()) {
      if (!log_.version.empty() && log_.version != version) {
        Several(number, absl::StrCat("NCCL ", version), absl::StrCat("NCCL ", log_.version));
      }
      log_.version = version;
    }
    const auto threads = Parse<std::int64_t>(Text(Behind(line, "nThread ")));
    const auto gpus = Parse<std::int64_t>(Text(Behind(line, "nGpus ")));
    if (threads.has_value() && gpus.has_value()) log_.gpus_per_process = std::max<std::int64_t>(1, *threads * *gpus);
    const std::string_view rank = Behind(line, "Rank ");
    if (!rank.empty() && line.find(" Pid ") != std::string_view::npos) {
      const auto found = Parse<std::int32_t>(Text(rank));
      const auto group = Parse<std::int64_t>(Text(Behind(line, " Group ")));
      if (group.value_or(0) != 0 && error_.empty()) {
        error_ = absl::StrCat("line ", number, ": a rank of group ", *group, "; allowed: one group of all ranks");
      }
      if (found.has_value() && *found >= 0) Rank(*found, std::string(Behind(line, " on ")), number);
    }
  }

  void Rank(std::int64_t rank, const std::string& host, int number) {
    Listed& listed = ranks_.try_emplace(rank, Listed{host}).first->second;
    ++listed.times;
    if (listed.host != host) Several(number, absl::StrCat("rank ", rank, " on ", host), "host " + listed.host);
  }

  // What is wrong with the row; empty: nothing, and it is kept.
  std::string Row(const std::vector<absl::string_view>& words, int number) {
    if (words.size() < kFewest) return absl::StrCat("cut off: ", words.size(), " columns");
    if (words.size() > kMost) {
      return absl::StrCat(words.size(), " columns; allowed: ", kFewest, " to ", kMost,
                          " (output of several processes?)");
    }
    NcclTestsRow row{.line = number, .bytes = *Parse<std::int64_t>(words[0])};
    if (row.bytes < 1 || row.bytes > kMostBytes) return "size; allowed: 1 byte to 1 PiB";
    const std::size_t first = words.size() - 2 * kGroup;
    for (const bool in_place : {false, true}) {
      double& seconds = in_place ? row.in_place : row.out_of_place;
      std::string problem = Group(words, first + (in_place ? kGroup : 0), row.bytes, &seconds);
      if (!problem.empty()) return absl::StrCat(in_place ? "in-place " : "", problem);
    }
    row.algbw = *Parse<double>(words[first + 1]);
    row.busbw = *Parse<double>(words[first + 2]);
    const auto [known, added] = lines_.try_emplace(row.bytes, log_.rows.size());
    if (!added) {
      const NcclTestsRow& before = log_.rows[known->second];
      if (before.out_of_place == row.out_of_place && before.in_place == row.in_place) {
        return absl::StrCat("the same as line ", before.line);
      }
      if (log_.remarks.size() < kMostProblems) {
        log_.remarks.push_back(absl::StrCat("line ", number, ": ", row.bytes, " bytes again, as in line ", before.line,
                                            "; both are used"));
      }
    }
    log_.rows.push_back(row);
    return "";
  }

  static std::string Group(const std::vector<absl::string_view>& words, std::size_t at, std::int64_t bytes,
                           double* seconds) {
    const auto time = Parse<double>(words[at]), algbw = Parse<double>(words[at + 1]);
    const auto busbw = Parse<double>(words[at + 2]), wrong = Parse<double>(words[at + 3]);
    if (!time.has_value() || !algbw.has_value() || !busbw.has_value()) return "time, algbw or busbw is no number";
    if (!(*time > 0) || !std::isfinite(*time)) return "time; allowed: above 0";
    if (!(*algbw >= 0) || !(*busbw >= 0) || !std::isfinite(*algbw) || !std::isfinite(*busbw)) {
      return "algbw or busbw; allowed: from 0 on";
    }
    if (!wrong.has_value() && words[at + 3] != "N/A") return "#wrong; allowed: a number or N/A";
    if (wrong.has_value() && *wrong != 0) return absl::StrCat("#wrong is ", words[at + 3]);
    const double implied = static_cast<double>(bytes) / (*time * kMicro) / kGiga;
    if (std::fabs(implied - *algbw) > kRounding * implied + 0.01) {
      return absl::StrCat("algbw ", *algbw, " is not size / time, ", implied);
    }
    *seconds = *time * kMicro;
    return "";
  }

  static absl::string_view Text(std::string_view text) { return {text.data(), text.size()}; }

  struct Listed {
    std::string host;
    int times = 0;
  };

  NcclTestsLog log_;
  std::map<std::int64_t, Listed> ranks_;
  std::map<std::int64_t, std::size_t> lines_;  // by size: the first row
  std::string error_;
  bool in_table_ = false;  // a heading was met
};

}  // namespace

std::string GradeOf(const NcclTestsLog& log) {
  if (log.damaged == 0) return "good";
  return 9 * static_cast<std::size_t>(log.damaged) <= log.rows.size() ? "fair" : "poor";
}

absl::StatusOr<NcclTestsLog> ParseNcclTestsLog(std::string_view text, std::string_view name) {
  Reader reader;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.Line(text.substr(0, end), ++number);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  for (const std::string& error : {reader.error(), reader.ProblemOfRanks()}) {
    if (!error.empty()) return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": ", error));
  }
  NcclTestsLog log = reader.Finish();
  if (!log.rows.empty()) return log;
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(name), ": no row of nccl-tests",
                   log.problems.empty() ? std::string() : absl::StrCat("; ", log.problems.front())));
}

}  // namespace orrery::calibration
