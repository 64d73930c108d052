// Pictures of schedules whose times are worked out by hand: every box, the memory, the text character for character;
// and of every family, that the picture is well-formed and has one box per pass.
#include "reports/schedule_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "reports/schedule_boxes.h"
#include "reports/svg.h"
#include "schedules/family.h"
#include "sim/pipeline/evaluate.h"

namespace orrery::reports {
namespace {

using pipeline::Costs;
using pipeline::Evaluation;
using schedules::Action;
using schedules::ActionKind;
using schedules::Placement;
using schedules::Schedule;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto F = ActionKind::kForward;
constexpr auto B = ActionKind::kBackward;
constexpr auto I = ActionKind::kInputGradient;
constexpr auto W = ActionKind::kWeightGradient;

// A schedule whose spans are written down: busy time, ends and peaks follow from them.
struct Drawn {
  Schedule schedule;
  Costs costs;
  Evaluation evaluation;

  void Rank(std::vector<Action> order, const std::vector<pipeline::Span>& spans) {
    pipeline::RankEvaluation rank = {.first_start = spans.front().start, .last_end = spans.back().end};
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (i == 0 || spans[i].start != spans[i - 1].start) rank.busy += spans[i].end - spans[i].start;
    }
    schedule.order.push_back(std::move(order));
    evaluation.spans.push_back(spans);
    evaluation.makespan = std::max(evaluation.makespan, rank.last_end);
    evaluation.longest_span = std::max(evaluation.longest_span, rank.span());
    for (const MemoryLevel& level : MemoryLevels(
             BoxesOf(schedule, evaluation, static_cast<std::int32_t>(evaluation.ranks.size())), costs.memory)) {
      rank.peak_memory = std::max(rank.peak_memory, level.level);
    }
    evaluation.ranks.push_back(rank);
  }
  absl::StatusOr<std::string> Svg(const SchedulePictureOptions& options) const {
    return ScheduleSvg(schedule, costs, evaluation, options);
  }
  absl::StatusOr<std::string> Text(const SchedulePictureOptions& options) const {
    return ScheduleText(schedule, costs, evaluation, options);
  }
};

// 1F1B, p = 2, m = 2, F = I = W = `one`:
//   rank 0: F0 0-1, F1 1-2, B0 after rank 1's 4-6, B1 after rank 1's 7-9
//   rank 1: F0 1-2, B0 2-4, F1 4-5, B1 5-7
// so makespan 9, busy 6 each; bubble 3/9 in the wall's sense and in that of rank 0's span.
Drawn OneForwardOneBackward(std::int64_t one = 1) {
  Drawn drawn;
  drawn.schedule = {.placement = Placement::Loop(2, 1), .micro_batches = 2, .order = {}};
  drawn.costs.stages = {{.forward = one, .input_gradient = one, .weight_gradient = one}};
  drawn.Rank({{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {B, 0, 1}},
             {{0, one}, {one, 2 * one}, {4 * one, 6 * one}, {7 * one, 9 * one}});
  drawn.Rank({{F, 0, 0}, {B, 0, 0}, {F, 0, 1}, {B, 0, 1}},
             {{one, 2 * one}, {2 * one, 4 * one}, {4 * one, 5 * one}, {5 * one, 7 * one}});
  return drawn;
}

// One rank: F0 0-1, the block of F1 and B0 1-4, B1 4-6.
Drawn WithBlock() {
  Drawn drawn;
  drawn.schedule = {.placement = Placement::Loop(1, 1), .micro_batches = 2, .order = {}};
  drawn.Rank({{F, 0, 0}, {.kind = B, .micro_batch = 0, .fused = true}, {F, 0, 1}, {B, 0, 1}},
             {{0, 1}, {1, 4}, {1, 4}, {4, 6}});
  return drawn;
}

// Two pipelines on two ranks, one micro-batch each, 0 down and 1 up, F = I = W = 1:
//   rank 0: F0 0-1, F1 (stage 1, chunk 1) 1-2, I1 2-3, W1 3-4, I0 4-5 (after rank 1's 2-3), W0 5-6
// and rank 1 its mirror image. I0 could start at 3: the order lets W1 go first.
Drawn Bidirectional() {
  Drawn drawn;
  drawn.schedule = {.placement = Placement::Bidirectional(2), .micro_batches = 2, .order = {}, .pipeline_of = {0, 1}};
  const std::vector<pipeline::Span> spans = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}};
  drawn.Rank({{F, 0, 0}, {F, 1, 1}, {I, 1, 1}, {W, 1, 1}, {I, 0, 0}, {W, 0, 0}}, spans);
  drawn.Rank({{F, 1, 1}, {F, 0, 0}, {I, 0, 0}, {W, 0, 0}, {I, 1, 1}, {W, 1, 1}}, spans);
  return drawn;
}

std::size_t Count(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// Whether every element is closed in order, every attribute is quoted and nothing is left unescaped.
bool IsWellFormed(std::string_view text) {
  std::vector<std::string> open;
  const std::size_t declaration = text.find("?>");
  if (!text.starts_with("<?xml") || declaration == std::string_view::npos) return false;
  text.remove_prefix(declaration + 2);
  while (!text.empty()) {
    const std::size_t begin = text.find('<');
    const std::string_view between = text.substr(0, begin);
    if (between.find('>') != std::string_view::npos) return false;
    for (std::size_t at = between.find('&'); at != std::string_view::npos; at = between.find('&', at + 1)) {
      const std::string_view entity = between.substr(at, between.find(';', at) - at + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;" && entity != "&apos;")
        return false;
    }
    if (begin == std::string_view::npos) break;
    const std::size_t end = text.find('>', begin);
    if (end == std::string_view::npos) return false;
    const std::string_view tag = text.substr(begin + 1, end - begin - 1);
    text.remove_prefix(end + 1);
    if (tag.find('<') != std::string_view::npos || Count(tag, "\"") != 2 * Count(tag, "=")) return false;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.emplace_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty();
}

std::string RectOf(std::string_view css_class, std::string_view x, std::string_view y, std::string_view width,
                   std::string_view height) {
  return absl::StrCat("<rect class=\"", std::string(css_class), "\" x=\"", std::string(x), "\" y=\"", std::string(y),
                      "\" width=\"", std::string(width), "\" height=\"", std::string(height), "\"/>\n");
}

// 1020 pixels leave 900 for the makespan of 9, 100 a unit, from x = 64. Rows of 28 pixels, 31 apart, from y = 104.
TEST(ScheduleSvg, DrawsEveryPassWhereItRuns) {
  const absl::StatusOr<std::string> svg = OneForwardOneBackward().Svg({.name = "1f1b", .pixels = 1020});
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_TRUE(IsWellFormed(*svg)) << *svg;
  const struct {
    std::string_view kind, x, y, width;
  } boxes[] = {{"F0", "64", "104", "100"},  {"F0", "164", "104", "100"}, {"B0", "464", "104", "200"},
               {"B0", "764", "104", "200"}, {"F0", "164", "135", "100"}, {"B0", "264", "135", "200"},
               {"F0", "464", "135", "100"}, {"B0", "564", "135", "200"}};
  for (const auto& box : boxes) EXPECT_THAT(*svg, HasSubstr(RectOf(box.kind, box.x, box.y, box.width, "28")));
  // And the legend's.
  EXPECT_EQ(Count(*svg, "<rect class=\"F0\""), 5);
  EXPECT_EQ(Count(*svg, "<rect class=\"B0\""), 5);
  EXPECT_EQ(Count(*svg, "class=\"dark\""), 8) << "a micro-batch in each";
  EXPECT_THAT(*svg, HasSubstr(RectOf("idle", "64", "104", "900", "28")));
  EXPECT_THAT(*svg, HasSubstr("makespan 9, bubble 33.3 % of it and 33.3 % of the longest span, peak 2 chunk "
                              "activations on rank 0<"));
  EXPECT_THAT(*svg, Not(HasSubstr("fused")));
  EXPECT_THAT(*svg, Not(HasSubstr("stripe:")));
}

// The rows end at y = 163; the memory's title stands 62 below, at 225, and the bands of 36 pixels begin at 237 and 276.
// Two activations, the most, are 34 pixels. Rank 0 holds 1 from 0, 2 from 1, 1 from 6, 0 from 9; rank 1 1 from 1 to 4
// and 4 to 7: the B of micro-batch 0 frees before the F of 1 takes.
TEST(ScheduleSvg, DrawsMemoryBelow) {
  const absl::StatusOr<std::string> svg = OneForwardOneBackward().Svg({.name = "1f1b", .pixels = 1020});
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_THAT(*svg, HasSubstr("d=\"M64 273H64V256H164V239H664V256H964V273V273\""));
  EXPECT_THAT(*svg, HasSubstr("d=\"M64 312H64V312H164V295H464V295H764V312V312\""));
  EXPECT_EQ(Count(*svg, "<line class=\"limit\" x1=\"64\" y1=\"239\" x2=\"964\" y2=\"239\"/>"), 1);
  EXPECT_THAT(*svg, HasSubstr("<text class=\"worst\" x=\"972\" y=\"259\">2</text>"));
  EXPECT_THAT(*svg, HasSubstr("<text class=\"\" x=\"972\" y=\"298\">1</text>"));
}

TEST(ScheduleSvg, DrawsABlockAsTwoHalves) {
  const absl::StatusOr<std::string> svg = WithBlock().Svg({.name = "block", .pixels = 720});
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_TRUE(IsWellFormed(*svg));
  EXPECT_THAT(*svg, HasSubstr(RectOf("F0", "164", "104", "300", "14")));
  EXPECT_THAT(*svg, HasSubstr(RectOf("B0", "164", "118", "300", "14")));
  EXPECT_THAT(*svg, HasSubstr(RectOf("block", "164", "104", "300", "28")));
  EXPECT_THAT(*svg, HasSubstr(">fused block<"));
  // Both micro-batches are held during the block.
  EXPECT_THAT(*svg, HasSubstr("peak 2 chunk activations"));
}

TEST(ScheduleSvg, TellsChunksAndPipelinesApart) {
  const absl::StatusOr<std::string> svg = Bidirectional().Svg({.name = "both ways"});
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_TRUE(IsWellFormed(*svg));
  for (const char* css_class : {"F0", "F1", "I0", "I1", "W0", "W1"}) {
    EXPECT_EQ(Count(*svg, absl::StrCat("<rect class=\"", css_class, "\"")), 3) << css_class << ", one in the legend";
    EXPECT_EQ(Count(*svg, absl::StrCat("\n.", css_class, "{fill:rgb(")), 1) << css_class;
  }
  EXPECT_EQ(Count(*svg, "<rect class=\"stripe\""), 7) << "six passes of pipeline 1, and the legend's";
  EXPECT_THAT(*svg, HasSubstr("p = 2, 2 pipelines, m = 2"));
}

// The picture depends on ratios only: the same in steps of 1e-9 of a unit.
TEST(ScheduleSvg, LabelsInUnits) {
  const absl::StatusOr<std::string> whole = OneForwardOneBackward().Svg({.name = "1f1b"});
  const absl::StatusOr<std::string> steps = OneForwardOneBackward(1000000000).Svg({.name = "1f1b", .unit = 1000000000});
  ASSERT_TRUE(whole.ok() && steps.ok());
  EXPECT_EQ(*whole, *steps);
  const absl::StatusOr<std::string> milliseconds =
      OneForwardOneBackward(250).Svg({.name = "1f1b", .unit = 1000, .unit_name = "ms"});
  ASSERT_TRUE(milliseconds.ok());
  EXPECT_THAT(*milliseconds, HasSubstr("makespan 2.25 ms,"));
  EXPECT_THAT(*milliseconds, HasSubstr(">F = 0.25, I = 0.25, W = 0.25, latency = 0 (ms)<"));
  EXPECT_THAT(*milliseconds, HasSubstr(">time (ms)<"));
  EXPECT_THAT(*milliseconds, HasSubstr(">0.2</text>"));
}

TEST(ScheduleSvg, EscapesNames) {
  const absl::StatusOr<std::string> svg =
      OneForwardOneBackward().Svg({.name = "<a> & \"b\" 'c' \x01\xff \xc3\xa9", .unit_name = "<s>"});
  ASSERT_TRUE(svg.ok());
  EXPECT_TRUE(IsWellFormed(*svg));
  EXPECT_THAT(*svg, HasSubstr("&lt;a&gt; &amp; &quot;b&quot; &apos;c&apos; ?? \xc3\xa9: p = 2, m = 2"));
  EXPECT_THAT(*svg, HasSubstr("time (&lt;s&gt;)"));
}

// One rank, F and B in turn: 3 m units.
Drawn OneRank(std::int32_t micro_batches) {
  Drawn drawn;
  drawn.schedule = {.placement = Placement::Loop(1, 1), .micro_batches = micro_batches, .order = {}};
  std::vector<Action> order;
  std::vector<pipeline::Span> spans;
  for (std::int32_t k = 0; k < micro_batches; ++k) {
    const std::int64_t start = std::int64_t{3} * k;
    order.push_back({F, 0, k});
    order.push_back({B, 0, k});
    spans.push_back({start, start + 1});
    spans.push_back({start + 1, start + 3});
  }
  drawn.Rank(std::move(order), spans);
  return drawn;
}

// Of 33 ranks every third (33 / 16, rounded up) has its memory drawn, and the fullest, here rank 1: the only one with
// two micro-batches.
TEST(ScheduleSvg, DrawsTheMemoryOfSomeOfManyRanks) {
  Drawn drawn;
  drawn.schedule = {.placement = Placement::Loop(33, 1), .micro_batches = 2, .order = {}};
  for (std::int32_t rank = 0; rank < 33; ++rank) {
    if (rank == 1) {
      drawn.Rank({{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {B, 0, 1}}, {{0, 1}, {1, 2}, {2, 4}, {4, 6}});
    } else {
      drawn.Rank({{F, 0, 0}, {B, 0, 0}, {F, 0, 1}, {B, 0, 1}}, {{0, 1}, {1, 3}, {3, 4}, {4, 6}});
    }
  }
  const absl::StatusOr<std::string> svg = drawn.Svg({.name = "many ranks"});
  ASSERT_TRUE(svg.ok());
  EXPECT_TRUE(IsWellFormed(*svg));
  EXPECT_EQ(Count(*svg, "<rect class=\"F0\""), 67);
  EXPECT_EQ(Count(*svg, "<path class=\"held\""), 12);
  EXPECT_EQ(Count(*svg, "class=\"worst\""), 1);
}

TEST(ScheduleSvg, LeavesMicroBatchesOutOfNarrowBoxes) {
  const absl::StatusOr<std::string> svg = OneRank(200).Svg({.name = "many", .pixels = 400});
  ASSERT_TRUE(svg.ok());
  EXPECT_EQ(Count(*svg, "<rect class=\"F0\""), 201);
  EXPECT_EQ(Count(*svg, "class=\"dark\"") + Count(*svg, "class=\"white\""), 0);
}

// W of no cost.
TEST(ScheduleSvg, LeavesOutPassesWithoutCost) {
  Drawn drawn;
  drawn.schedule = {.placement = Placement::Loop(1, 1), .micro_batches = 1, .order = {}};
  drawn.costs.stages = {{.forward = 1, .input_gradient = 1, .weight_gradient = 0}};
  drawn.Rank({{F, 0, 0}, {I, 0, 0}, {W, 0, 0}}, {{0, 1}, {1, 2}, {2, 2}});
  const absl::StatusOr<std::string> svg = drawn.Svg({.name = "no W"});
  ASSERT_TRUE(svg.ok());
  EXPECT_EQ(Count(*svg, "<rect class=\"I0\""), 2);
  EXPECT_EQ(Count(*svg, "<rect class=\"W0\""), 1) << "the legend's";
  const absl::StatusOr<std::string> text = drawn.Text({.name = "no W"});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("\n0 F0 I0\n"));
}

TEST(SchedulePictures, RefuseWhatCannotBeDrawn) {
  const Drawn drawn = OneForwardOneBackward();
  EXPECT_EQ(drawn.Svg({.name = "", .pixels = 399}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(drawn.Svg({.name = "", .pixels = 20001}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(drawn.Text({.name = "", .columns = 39}).status().code(), absl::StatusCode::kInvalidArgument);
  const Drawn large = OneRank(100001);
  EXPECT_EQ(large.Svg({.name = ""}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(large.Text({.name = ""}).status().message()), HasSubstr("200002 passes"));
}

// Cells of one unit, 3 characters for " F0"; the first column names the rank.
TEST(ScheduleText, IsOneCellPerUnit) {
  const absl::StatusOr<std::string> text = OneForwardOneBackward().Text({.name = "1f1b"});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "1f1b: p = 2, m = 2\n"
            "makespan 9, bubble 33.3 % of it and 33.3 % of the longest span, peak 2 chunk activations on rank 0\n"
            "F = 1, I = 1, W = 1, latency = 0\n"
            "F forward, B backward, . idle\n"
            "scale: 3 characters = 1\n"
            "\n"
            "  0              5\n"
            "0 F0 F1 .. .. B0=== .. B1===\n"
            "1 .. F0 B0=== F1 B1=== .. ..\n");
}

TEST(ScheduleText, ShowsBlocksChunksAndPipelines) {
  const absl::StatusOr<std::string> block = WithBlock().Text({.name = "block"});
  ASSERT_TRUE(block.ok());
  EXPECT_THAT(*block, HasSubstr("\n0 F0 F1&B0=== B1===\n"));
  EXPECT_THAT(*block, HasSubstr("F&B a fused block"));
  const absl::StatusOr<std::string> both_ways = Bidirectional().Text({.name = "both ways"});
  ASSERT_TRUE(both_ways.ok());
  EXPECT_THAT(*both_ways, HasSubstr("\n0 F0 f1 i1 w1 I0 W0\n1 f1 F0 I0 W0 i1 w1\n"));
  EXPECT_THAT(*both_ways, HasSubstr("lower case: chunk 1"));
}

// m = 12: 36 cells of 4 characters (" F10") do not fit in 40, 36 characters do. m = 20: 60 cells become 38 columns, and
// column c shows what runs at (2c + 1) x 60 / 76: F in the first third of every 3 units.
TEST(ScheduleText, ShrinksToTheWidth) {
  const absl::StatusOr<std::string> exact = OneRank(12).Text({.name = "", .columns = 40});
  ASSERT_TRUE(exact.ok());
  std::string line;
  for (int k = 0; k < 12; ++k) line += "FBB";
  EXPECT_THAT(*exact, HasSubstr(absl::StrCat("\n0 ", line, "\n")));
  EXPECT_THAT(*exact, HasSubstr("scale: 1 character = 1\n"));
  const absl::StatusOr<std::string> scaled = OneRank(20).Text({.name = "", .columns = 40});
  ASSERT_TRUE(scaled.ok());
  line.clear();
  for (int c = 0; c < 38; ++c) line += (2 * c + 1) * 60 % (3 * 76) < 76 ? 'F' : 'B';
  EXPECT_THAT(*scaled, HasSubstr(absl::StrCat("\n0 ", line, "\n")));
  EXPECT_THAT(*scaled, HasSubstr("scale: 1 character = about 1.579\n"));  // 60 / 38
}

// I frees M_B - M_W, W frees M_W: 3 from 0, 2 from 4, 0 from 6.
TEST(MemoryLevels, FollowIAndW) {
  const Action forward = {F, 0, 0};
  const Action input = {I, 0, 0};
  const Action weight = {W, 0, 0};
  const std::vector<MemoryLevel> levels = MemoryLevels(
      {{.pass = &forward, .span = {0, 1}}, {.pass = &input, .span = {2, 4}}, {.pass = &weight, .span = {5, 6}}},
      {.forward = 3, .weight = 2});
  std::vector<std::int64_t> flat;
  for (const MemoryLevel& level : levels) flat.insert(flat.end(), {level.from, level.level});
  EXPECT_THAT(flat, ::testing::ElementsAre(0, 3, 4, 2, 6, 0));
}

TEST(TickStep, IsRound) {
  EXPECT_EQ(TickStep(34, 1, 16), 5);
  EXPECT_EQ(TickStep(33, 1, 16), 2);
  EXPECT_EQ(TickStep(9, 1, 16), 1);
  EXPECT_EQ(TickStep(34'000'000'000, 1'000'000'000, 16), 5'000'000'000);
  EXPECT_EQ(TickStep(INT64_MAX, 1, 16), 1'000'000'000'000'000'000);
}

TEST(Xml, EscapesWhatIsNotText) {
  EXPECT_EQ(XmlEscape("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&apos;");
  EXPECT_EQ(XmlEscape("\xe2\x82\xac \xf0\x9f\x98\x80"), "\xe2\x82\xac \xf0\x9f\x98\x80");
  // Overlong, a surrogate, cut off, U+FFFF, above U+10FFFF, control characters.
  EXPECT_EQ(XmlEscape("\xc0\x80|\xed\xa0\x80|\xe2\x82|\xef\xbf\xbf|\xf4\x90\x80\x80|\x1b"), "??|???|??|???|????|?");
}

TEST(Svg, WritesHundredths) {
  EXPECT_EQ(SvgNumber(1250), "12.5");
  EXPECT_EQ(SvgNumber(-5), "-0.05");
  EXPECT_EQ(SvgNumber(100), "1");
}

class FamilyPictureTest : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> FamilyNames() {
  std::vector<std::string> names;
  for (const schedules::Family& family : schedules::Families()) names.emplace_back(family.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, FamilyPictureTest, ::testing::ValuesIn(FamilyNames()), [](const auto& test) {
  std::string name = test.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-'; }, '_');
  return name;
});

// One box per pass, besides the legend; the memory drawn reaches the peak that the evaluation counts.
TEST_P(FamilyPictureTest, IsWellFormedAndComplete) {
  const schedules::Family* family = *schedules::FindFamily(GetParam());
  schedules::Parameters parameters = {.ranks = 4, .chunks = family->fixed_chunks, .micro_batches = 8, .slices = 2};
  absl::StatusOr<Schedule> schedule = schedules::Generate(family->name, parameters);
  for (const std::int32_t chunks : {2, 1}) {
    if (schedule.ok()) break;
    parameters.chunks = chunks;
    schedule = schedules::Generate(family->name, parameters);
  }
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  Costs costs;
  costs.stages = {{.forward = 5, .input_gradient = 6, .weight_gradient = 4}};
  costs.latency = 1;
  costs.memory = {.forward = 3, .weight = 1};
  const absl::StatusOr<Evaluation> evaluation = pipeline::Evaluate(*schedule, costs, {.spans = true});
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  const SchedulePictureOptions options = {.name = GetParam()};
  const absl::StatusOr<std::string> svg = ScheduleSvg(*schedule, costs, *evaluation, options);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_TRUE(IsWellFormed(*svg));
  std::size_t passes = 0;
  std::size_t blocks = 0;
  std::size_t kinds = 0;
  for (std::int32_t rank = 0; rank < schedule->ranks(); ++rank) {
    const auto& order = schedule->order[static_cast<std::size_t>(rank)];
    passes += order.size();
    blocks +=
        static_cast<std::size_t>(std::count_if(order.begin(), order.end(), [](const Action& a) { return a.fused; }));
    std::int64_t peak = 0;
    for (const MemoryLevel& level : MemoryLevels(BoxesOf(*schedule, *evaluation, rank), costs.memory)) {
      peak = std::max(peak, level.level);
    }
    EXPECT_EQ(peak, evaluation->ranks[static_cast<std::size_t>(rank)].peak_memory) << "rank " << rank;
  }
  std::size_t boxes = 0;
  for (const char kind : {'F', 'B', 'I', 'W'}) {
    const std::size_t found = Count(*svg, absl::StrCat("<rect class=\"", std::string(1, kind)));
    boxes += found;
    if (found > 0) ++kinds;
  }
  const auto swatches = static_cast<std::size_t>(std::min(schedule->chunks(), 4));
  EXPECT_EQ(boxes, passes + kinds * swatches + (blocks > 0 ? 2 : 0));
  EXPECT_EQ(Count(*svg, "<rect class=\"block\""), blocks + (blocks > 0 ? 1 : 0));
  const absl::StatusOr<std::string> text = ScheduleText(*schedule, costs, *evaluation, options);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(Count(*text, "\n"), 11) << "four lines above, scale, blank, times, a line per rank";
}

}  // namespace
}  // namespace orrery::reports
