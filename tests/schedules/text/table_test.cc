// PyTorch's tables, read and written; how nonsense is refused; and the tables that PyTorch itself lowered, where they
// are at hand (tests/reference.h).
#include "schedules/text/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/reference.h"

namespace orrery::schedules {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum ActionKind;

Schedule MustRead(const std::string& text) {
  absl::StatusOr<Schedule> schedule = ReadTable(text, "t.csv");
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule{};
}

std::string Error(const std::string& text) {
  const absl::Status status = ReadTable(text, "t.csv").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

TEST(TableTest, OneStagePerRank) {
  const Schedule schedule = MustRead("0F0,0F1,0B0,0B1\n1F0,1I0,1F1,1W0,1B1\n");
  EXPECT_EQ(schedule.placement, Placement::Loop(2, 1));
  EXPECT_EQ(schedule.micro_batches, 2);
  EXPECT_TRUE(schedule.pipeline_of.empty());
  EXPECT_TRUE(schedule.slots.empty());
  EXPECT_THAT(schedule.order[1],
              ElementsAre(Action{kForward, 0, 0}, Action{kInputGradient, 0, 0}, Action{kForward, 0, 1},
                          Action{kWeightGradient, 0, 0}, Action{kBackward, 0, 1}));
}

// Stages 0 and 3 stand on rank 0: a V. The block is two actions, the first of them fused.
TEST(TableTest, VAndBlocks) {
  const std::string text = "0F0,3F0,0F1,(3F1;3B0)OVERLAP_F_B,3B1,0B0,0B1\n1F0,2F0,1F1,2F1,2B0,1B0,2B1,1B1\n";
  const Schedule schedule = MustRead(text);
  EXPECT_EQ(schedule.placement, Placement::Wave(2, 2));
  Action block = {kForward, 1, 1};
  block.fused = true;
  EXPECT_EQ(schedule.order[0][3], block);
  EXPECT_EQ(schedule.order[0][4], (Action{kBackward, 1, 0}));
  EXPECT_EQ(WriteTable(schedule), text);
}

// Micro-batch 0 goes down the ranks, micro-batch 1 up: two copies of the model. Idle slots are kept.
TEST(TableTest, BidirectionalWithSlots) {
  const std::string text = "0F0,1F1,1B1,,,0B0\n0F1,1F0,1B0,0B1\n";
  const Schedule schedule = MustRead(text);
  EXPECT_EQ(schedule.placement, Placement::Bidirectional(2));
  EXPECT_THAT(schedule.pipeline_of, ElementsAre(0, 1));
  EXPECT_TRUE(Validate(schedule).ok()) << Validate(schedule);
  EXPECT_THAT(schedule.slots[0], ElementsAre(0, 1, 2, 5));
  EXPECT_EQ(WriteTable(schedule), text);
}

TEST(TableTest, LinesAndBlanks) {
  const Schedule schedule = MustRead(
      "\xef\xbb\xbf"
      "0F0, 0F1 ,\"0B0\",0B1\r\n\r\n  \n1F0,1B0,1F1,1B1,,,\r\n\n");
  EXPECT_EQ(schedule.ranks(), 2);
  EXPECT_TRUE(Validate(schedule).ok());
  EXPECT_TRUE(schedule.slots.empty());  // blanks after the last action say nothing
}

TEST(TableTest, ErrorsNameLineAndCell) {
  EXPECT_THAT(Error(""), HasSubstr("t.csv: no row; allowed: one per rank"));
  EXPECT_THAT(Error("\n \n"), HasSubstr("no row"));
  EXPECT_THAT(Error("0F0,0B0\n,,\n"), HasSubstr("line 2: rank 1 runs nothing"));
  EXPECT_THAT(Error("0F0,0X0\n"), HasSubstr("t.csv: line 1, cell 2: \"0X0\"; allowed: <stage><F, B, I or W>"));
  EXPECT_THAT(Error("0F0,F0\n"), HasSubstr("cell 2: \"F0\""));
  EXPECT_THAT(Error("0F\n"), HasSubstr("\"0F\"; allowed: a micro-batch after the kind"));
  EXPECT_THAT(Error("0F0x\n"), HasSubstr("\"0F0x\""));
  EXPECT_THAT(Error("-1F0\n"), HasSubstr("\"-1F0\""));
  EXPECT_THAT(Error("0F99999999999\n"), HasSubstr("a micro-batch after the kind"));
  EXPECT_THAT(Error("0F0,0UNSHARD1\n"), HasSubstr("without a micro-batch"));
  EXPECT_THAT(Error("(0F0;0B0\n"), HasSubstr("a block of two passes"));
  EXPECT_THAT(Error("(0F0,0B0)OVERLAP_F_B\n"), HasSubstr("a block of two passes"));
  EXPECT_THAT(Error("(0F0;0F1)OVERLAP_F_B\n"), HasSubstr("one F and one B or I"));
  EXPECT_THAT(Error("0F0,0B0\n\n0F1,0F0\n"), HasSubstr("line 3, cell 2: 0F0 stands in line 1, cell 1 already"));
  EXPECT_THAT(Error("0F0,1B0\n1F0,0B0\n"), HasSubstr("line 1, cell 2: 1B0 stands on rank 0, allowed: rank 1"));
  EXPECT_THAT(Error("0F0,0B0,0I0\n"), HasSubstr("line 1, cell 3: 0I0 repeats what the rank has run"));
  EXPECT_THAT(Error("0F0,0B0,0F2,0B2\n"), HasSubstr("no rank runs 0F1"));
  EXPECT_THAT(Error("0UNSHARD,0RESHARD\n"), HasSubstr("no rank runs 0F0"));
}

// Sizes that no memory holds are refused before anything is allocated.
TEST(TableTest, NumbersAreBounded) {
  EXPECT_THAT(Error("0F0,0B0,2000000000F0\n"), HasSubstr("cell 3: 2000000000F0 makes 2000000001 stages"));
  EXPECT_THAT(Error("0F0,0B0,0F2147483647\n"), HasSubstr("0F2147483647 makes 1 stages and 2147483648 micro-batches"));
}

// Micro-batch 1 shares stage 0's rank with micro-batch 0 but not stage 1's.
TEST(TableTest, PlacementThatCannotBeInferred) {
  EXPECT_THAT(
      Error("0F0,0B0,0F1,0B1\n1F0,1B0\n1F1,1B1\n"),
      HasSubstr("line 3, cell 1: 1F1 stands on rank 2 and 1F0 on rank 1, while both micro-batches run stage 0 on "
                "rank 0; allowed: one rank for each stage"));
}

// Every row of the lowered form can be derived by hand from the rules: see the comment at WriteLoweredTable. Rank 0
// begins with its parameters; rank 1's receive is posted when rank 0 has run 0F0. In a sweep rank 0 goes first: rank 1
// posts 0's RECV_B0 in the sweep in which it runs 1B0.
TEST(TableTest, Lowered) {
  const std::string compute = "0F0,0B0\n1F0,1B0\n";
  const Schedule schedule = MustRead(compute);
  const std::string lowered =
      "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
      "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\n";
  EXPECT_EQ(WriteLoweredTable(schedule), lowered);
  EXPECT_EQ(WriteTable(MustRead(lowered)), compute);
}

TEST(TableTest, CommunicationIsChecked) {
  const auto with = [](const std::string& first, const std::string& second) { return first + "\n" + second + "\n"; };
  const std::string first = "0F0,0SEND_F0,0RECV_B0,0B0";
  const std::string second = "1RECV_F0,1F0,1B0,1SEND_B0";
  EXPECT_TRUE(ReadTable(with(first, second), "t.csv").ok());
  EXPECT_THAT(Error(with("0SEND_F0,0F0,0RECV_B0,0B0", second)), HasSubstr("0SEND_F0 comes before what it sends"));
  EXPECT_THAT(Error(with("0F0,0SEND_F0,0B0,0RECV_B0", second)),
              HasSubstr("0RECV_B0 comes after the pass that needs it"));
  EXPECT_THAT(Error(with("0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0", second)),
              HasSubstr("cell 3: 0SEND_F0 stands there twice"));
  EXPECT_THAT(Error(with("0F0,0RECV_B0,0B0", second)), HasSubstr("line 1, cell 1: 0F0 lacks 0SEND_F0"));
  EXPECT_THAT(Error(with(first, "1F0,1B0,1SEND_B0")), HasSubstr("line 2, cell 1: 1F0 lacks 1RECV_F0"));
  EXPECT_THAT(Error(with(first + ",1SEND_B0", second)), HasSubstr("1SEND_B0 stands on rank 0, allowed: rank 1"));
  EXPECT_THAT(Error(with(first + ",0SEND_B0", second)), HasSubstr("0SEND_B0 is no message between ranks"));
  EXPECT_THAT(Error(with(first + ",0SEND_F7", second)), HasSubstr("allowed: 0 to 0"));
  EXPECT_THAT(Error(with(first + ",7RESHARD", second)), HasSubstr("allowed: 0 to 1"));
  EXPECT_THAT(Error(with(first + ",1RESHARD", second)), HasSubstr("does not hold the stage"));
  // Parameters alone need no messages.
  EXPECT_TRUE(ReadTable("0UNSHARD,0F0,0B0,0RESHARD\n1F0,1B0\n", "t.csv").ok());
}

TEST(TableTest, Json) {
  const std::string json = ScheduleJson(MustRead("0F0,,(0F1;0B0)OVERLAP_F_B,0B1\n"));
  EXPECT_THAT(json, HasSubstr("\"micro_batches\": 2"));
  EXPECT_THAT(json, HasSubstr("\"(0F1;0B0)OVERLAP_F_B\""));
  EXPECT_THAT(json, HasSubstr("\"slots\""));
}

// Random bytes, and tables with a character changed, are read or refused, never worse.
TEST(TableTest, Nonsense) {
  std::mt19937_64 random(7);
  const std::string good = "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n1RECV_F0,(1F0;1B0)OVERLAP_F_B,1SEND_B0\n";
  constexpr std::string_view kSet = "0129FBIWSENDRCV_();,\n\r \"\0x";
  for (int i = 0; i < 20000; ++i) {
    std::string text = i % 2 == 0 ? good : std::string(random() % 40, 'x');
    for (std::size_t k = i % 2 == 0 ? random() % 4 : text.size(); k-- > 0;) {
      text[i % 2 == 0 ? random() % text.size() : k] = kSet[random() % kSet.size()];
    }
    const auto schedule = ReadTable(text, "t.csv");
    if (schedule.ok()) (void)Validate(*schedule);
  }
}

std::string Contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  std::string contents = text.str();
  std::erase(contents, '\r');
  return contents;
}

TEST(TableTest, PyTorchsLoweredTables) {
  const std::filesystem::path folder = orrery::tests::ReferenceFile("schedules");
  if (folder.empty()) GTEST_SKIP() << "no public tables at hand";
  int lowered = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    if (!name.ends_with("_comms.csv")) continue;
    const std::string text = Contents(file.path());
    const auto schedule = ReadTable(text, name);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_EQ(WriteLoweredTable(*schedule), text) << name;
    ++lowered;
  }
  EXPECT_GE(lowered, 4);
}

TEST(TableTest, PublicTablesAreReadAndWritten) {
  const std::filesystem::path folder = orrery::tests::ReferenceFile("schedules");
  if (folder.empty()) GTEST_SKIP() << "no public tables at hand";
  int tables = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    if (!name.ends_with(".csv") || has("_comm") || has("_cmds") || name == "index.csv" || name == "evals.csv" ||
        has("table5") || name.starts_with("torch_1f1b_")) {
      continue;
    }
    const std::string text = Contents(file.path());
    const auto schedule = ReadTable(text, name);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_TRUE(Validate(*schedule).ok()) << name << ": " << Validate(*schedule);
    const auto again = ReadTable(WriteTable(*schedule), name);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->order, schedule->order) << name;
    EXPECT_EQ(again->placement, schedule->placement) << name;
    EXPECT_EQ(again->slots, schedule->slots) << name;
    ++tables;
  }
  EXPECT_GE(tables, 300);
}

}  // namespace
}  // namespace orrery::schedules
