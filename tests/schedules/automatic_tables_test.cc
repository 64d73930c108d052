// Automatic families against the orders of public generators and the rates of the Zero Bubble paper, where they are at
// hand (tests/reference.h).
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "schedules/family.h"
#include "tests/schedules/split_evaluator.h"
#include "tests/schedules/tables.h"

namespace orrery::schedules {
namespace {

bool StartsWith(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }

// The number after `tag`, 0 where there is none.
std::int64_t NumberAfter(const std::string& text, const std::string& tag) {
  const std::size_t at = text.find(tag);
  return at == std::string::npos ? 0 : std::strtoll(text.c_str() + at + tag.size(), nullptr, 10);
}

// What the generator of the table was given.
Parameters ParametersOf(const TableCase& a_case) {
  Parameters parameters{.ranks = a_case.ranks(), .chunks = a_case.chunks(), .micro_batches = a_case.micro_batches()};
  const auto cost = [&](const char* column) { return static_cast<std::int64_t>(a_case.Number(column)); };
  parameters.planning.stages = {{cost("F"), cost("B"), cost("W")}};
  parameters.planning.latency = cost("comm");
  PassMemory& memory = parameters.planning.memory;
  const std::string& limit = a_case.Cell("mem_limit");
  if (const std::size_t multiple = limit.find("*p*M_B"); multiple != std::string::npos) {
    // "2*p*M_B, M_B=34h+5as=201216 M_W=32h=73728"
    memory = {NumberAfter(limit, "5as="), NumberAfter(limit, "32h=")};
    parameters.planning.memory_limit = std::atoll(limit.c_str()) * a_case.ranks() * memory.forward;
  } else if (limit.find("chunk activations") != std::string::npos) {
    memory = {1, 1};
    parameters.planning.memory_limit = std::atoll(limit.c_str());
  } else {
    // "12 (mem_f=2 mem_b=-1 mem_w=-1)"
    memory = {NumberAfter(limit, "mem_f="), -NumberAfter(limit, "mem_w=")};
    parameters.planning.memory_limit = std::atoll(limit.c_str());
  }
  return parameters;
}

struct Counts {
  int better = 0;
  int equal = 0;
  int worse = 0;
};

// Plans the case anew and compares spans; the peaks must not be above the table's.
void Compare(const std::string& family, const TableCase& a_case, Counts& counts) {
  SCOPED_TRACE(family + " " + a_case.name());
  const Parameters parameters = ParametersOf(a_case);
  const auto schedule = Generate(family, parameters);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  ASSERT_TRUE(Validate(*schedule).ok()) << Validate(*schedule);
  const auto got = EvaluateSplit(*schedule, parameters.planning);
  const auto table = EvaluateSplit(ReadTable(a_case), parameters.planning);
  ASSERT_TRUE(got && table);
  ++(got->longest_span < table->longest_span    ? counts.better
     : got->longest_span == table->longest_span ? counts.equal
                                                : counts.worse);
  EXPECT_LE(got->longest_span, table->longest_span);
  EXPECT_LE(got->peak_memory, table->peak_memory);
  EXPECT_LE(got->peak_activations, table->peak_activations);
  if (parameters.planning.memory_limit > 0) {
    EXPECT_LE(got->peak_memory, parameters.planning.memory_limit);
  }
}

void CompareAll(const std::string& family, const std::string& schedule, int better, int equal) {
  const std::vector<TableCase> cases = TableCases();
  if (cases.empty()) GTEST_SKIP() << "no public tables";
  Counts counts;
  for (const TableCase& a_case : cases) {
    if (StartsWith(a_case.schedule(), schedule)) Compare(family, a_case, counts);
  }
  std::printf("%s: %d better, %d equal, %d worse\n", family.c_str(), counts.better, counts.equal, counts.worse);
  EXPECT_EQ(counts.better, better);
  EXPECT_EQ(counts.equal, equal);
  EXPECT_EQ(counts.worse, 0);
}

TEST(AutomaticTablesTest, ZbAuto) { CompareAll("zb-auto", "ZB automatic", 0, 0); }

// Table 5 of the Zero Bubble paper: (cost - m(F + I + W)) / cost to four decimals, cost = the longest span, from the
// times of its Table 9 in microseconds; M_B = 34h + 5as and M_W = 32h (Tables 1 and 3, sequence length 1024).
TEST(AutomaticTablesTest, ZeroBubblePaperTable5) {
  const std::string path = orrery::tests::ReferenceFile("schedules/zero_bubble_table5.csv");
  if (path.empty()) GTEST_SKIP() << "no public tables";
  const auto table = CsvTable::Parse(ReadText(path), path).value();
  const std::map<std::string, std::array<std::int64_t, 2>> heads_and_hidden = {
      {"1.5B", {24, 2304}}, {"6.2B", {32, 4096}}, {"14.6B", {40, 5120}}, {"28.3B", {48, 6144}}};
  const std::map<std::string, std::string> families = {{"ZB-1p", "zb-1p"}, {"ZB-2p", "zb-2p"}};
  int rates = 0;
  for (const CsvRow& row : table.rows()) {
    // model, p, m, T_F, T_B, T_W, T_comm, schedule, published_bubble_rate
    const std::vector<std::string>& cells = row.cells;
    const auto family = families.find(cells[7]);
    if (family == families.end()) continue;
    const auto [heads, hidden] = heads_and_hidden.at(cells[0]);
    const auto microseconds = [&](std::size_t i) {
      return static_cast<std::int64_t>(std::atof(cells[i].c_str()) * 1000 + 0.5);
    };
    Parameters parameters{.ranks = std::atoi(cells[1].c_str()), .micro_batches = std::atoi(cells[2].c_str())};
    parameters.planning = {{{microseconds(3), microseconds(4), microseconds(5)}},
                           microseconds(6),
                           {34 * hidden + 5 * heads * 1024, 32 * hidden},
                           0};
    const auto schedule = Generate(family->second, parameters);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const auto span = static_cast<double>(EvaluateSplit(*schedule, parameters.planning)->longest_span);
    const PassCosts& costs = parameters.planning.stages.front();
    const auto work = static_cast<double>((costs.forward + costs.backward()) * parameters.micro_batches);
    std::array<char, 16> rate{};
    std::snprintf(rate.data(), rate.size(), "%.4f", (span - work) / span);
    EXPECT_EQ(std::string(rate.data()), cells[8]) << cells[0] << ", m = " << cells[2] << ", " << cells[7];
    ++rates;
  }
  EXPECT_EQ(rates, 24);
}

}  // namespace
}  // namespace orrery::schedules
