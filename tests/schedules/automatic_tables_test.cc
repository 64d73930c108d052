// Automatic families against the orders of public generators and the rates of the Zero Bubble paper, where they are at
// hand (tests/reference.h).
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "schedules/family.h"
#include "sim/pipeline/evaluate.h"
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

// ZB-1p and ZB-2p are one limit each.
bool Plans(const std::string& family, const Parameters& parameters) {
  const bool is_limit = family == "zb-1p" || family == "zb-2p";
  return !is_limit || (parameters.planning.memory_limit > 0 && (*FindFamily(family))->check(parameters).ok());
}

void CompareAll(const std::string& family, const std::string& schedule, int better, int equal) {
  const std::vector<TableCase> cases = TableCases();
  if (cases.empty()) GTEST_SKIP() << "no public tables";
  Counts counts;
  for (const TableCase& a_case : cases) {
    if (!StartsWith(a_case.schedule(), schedule) || !Plans(family, ParametersOf(a_case))) continue;
    Compare(family, a_case, counts);
  }
  std::printf("%s: %d better, %d equal, %d worse\n", family.c_str(), counts.better, counts.equal, counts.worse);
  EXPECT_EQ(counts.better, better);
  EXPECT_EQ(counts.equal, equal);
  EXPECT_EQ(counts.worse, 0);
}

TEST(AutomaticTablesTest, ZbAuto) { CompareAll("zb-auto", "ZB automatic", 2, 67); }
TEST(AutomaticTablesTest, Zb1p) { CompareAll("zb-1p", "ZB automatic (heuristic)", 0, 19); }
TEST(AutomaticTablesTest, Zb2p) { CompareAll("zb-2p", "ZB automatic (heuristic)", 0, 17); }
TEST(AutomaticTablesTest, ZbVGreedy) { CompareAll("zb-v-greedy", "ZB-V (greedy auto)", 0, 16); }
TEST(AutomaticTablesTest, VAuto) { CompareAll("v-auto", "V adaptive", 1, 5); }

// Table 5 of the Zero Bubble paper: (cost - m(F + I + W)) / cost to four decimals, cost = the longest span, from the
// times of its Table 9 in microseconds; M_B = 34h + 5as and M_W = 32h (Tables 1 and 3, sequence length 1024).
struct Model {
  std::int64_t heads = 0;
  std::int64_t hidden = 0;
  std::int32_t layers = 0;
};

// A row of the table: model, p, m, T_F, T_B, T_W, T_comm, schedule, published rate, ...
class Table5Row {
 public:
  explicit Table5Row(const CsvRow& row) : cells_(row.cells) {}

  const std::string& schedule() const { return cells_[7]; }
  const std::string& published() const { return cells_[8]; }
  std::string what() const { return cells_[0] + ", m = " + cells_[2] + ", " + cells_[7]; }

  // `order` evaluated, or the message that says why not.
  std::string Rate() const {
    static const std::map<std::string, std::string> families = {{"1F1B", "1f1b"},   {"1F1B-I", "interleaved-1f1b"},
                                                                {"ZB-H1", "zb-h1"}, {"ZB-H2", "zb-h2"},
                                                                {"ZB-1p", "zb-1p"}, {"ZB-2p", "zb-2p"}};
    const bool interleaved = schedule() == "1F1B-I";
    Parameters parameters = Given();
    // One layer per chunk, the first and the last stage one less.
    if (interleaved) parameters.chunks = (TheModel().layers + 2) / parameters.ranks;
    const auto schedule = Generate(families.at(cells_[7]), parameters);
    if (!schedule.ok()) return schedule.status().ToString();
    pipeline::Costs costs;
    const PassCosts& stage = parameters.planning.stages.front();
    // Twelfths of a microsecond, so that 2, 3 and 4 chunks share a stage evenly.
    const std::int64_t share = 12 / parameters.chunks;
    costs.stages = {{stage.forward * share, stage.input_gradient * share, stage.weight_gradient * share}};
    costs.latency = parameters.planning.latency * 12;
    const auto evaluation = pipeline::Evaluate(*schedule, costs);
    if (!evaluation.ok()) return evaluation.status().ToString();
    // The paper's convention for 1F1B-I: Megatron's order, its span less p messages.
    const std::int64_t uncounted = interleaved ? parameters.ranks * costs.latency : 0;
    const auto span = static_cast<double>(evaluation->longest_span - uncounted);
    const auto work = static_cast<double>((stage.forward + stage.backward()) * 12 * parameters.micro_batches);
    std::array<char, 16> rate{};
    std::snprintf(rate.data(), rate.size(), "%.4f", (span - work) / span);
    return rate.data();
  }

 private:
  const Model& TheModel() const {
    static const std::map<std::string, Model> models = {
        {"1.5B", {24, 2304, 22}}, {"6.2B", {32, 4096, 30}}, {"14.6B", {40, 5120, 46}}, {"28.3B", {48, 6144, 62}}};
    return models.at(cells_[0]);
  }
  std::int64_t Microseconds(std::size_t cell) const { return std::llround(std::atof(cells_[cell].c_str()) * 1000); }
  Parameters Given() const {
    const Model& model = TheModel();
    Parameters parameters{.ranks = std::atoi(cells_[1].c_str()), .micro_batches = std::atoi(cells_[2].c_str())};
    parameters.planning = {{{Microseconds(3), Microseconds(4), Microseconds(5)}},
                           Microseconds(6),
                           {34 * model.hidden + 5 * model.heads * 1024, 32 * model.hidden},
                           0};
    return parameters;
  }

  std::vector<std::string> cells_;
};

TEST(AutomaticTablesTest, ZeroBubblePaperTable5) {
  const std::string path = orrery::tests::ReferenceFile("schedules/zero_bubble_table5.csv");
  if (path.empty()) GTEST_SKIP() << "no public tables";
  const auto table = CsvTable::Parse(ReadText(path), path).value();
  int directly = 0;
  int by_convention = 0;
  for (const CsvRow& cells : table.rows()) {
    const Table5Row row(cells);
    const std::string rate = row.Rate();
    EXPECT_EQ(rate, row.published()) << row.what();
    (row.schedule() == "1F1B-I" ? by_convention : directly) += rate == row.published() ? 1 : 0;
  }
  std::printf("Table 5: %d rates directly, %d of 1F1B-I by the paper's convention\n", directly, by_convention);
  EXPECT_EQ(directly, 60);
  EXPECT_EQ(by_convention, 12);
}

}  // namespace
}  // namespace orrery::schedules
