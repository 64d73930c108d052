#include "proto/loader.h"

#include "gmock/gmock.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/origins.h"
#include "proto/text_reader.h"
#include "tests/proto/spec_fixture.h"

namespace orrery::spec {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(LoaderTest, MakesEveryDefaultExplicit) {
  const absl::StatusOr<LoadedRun> loaded = LoadGood();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const v1::Run& run = loaded->run;
  // hidden / heads = 1024 / 16; 4 x hidden.
  EXPECT_EQ(run.model().head_dim(), 64);
  EXPECT_EQ(run.model().ffn_hidden(), 4096);
  EXPECT_EQ(run.model().block(), v1::SERIAL);
  EXPECT_EQ(run.model().attention_window(), 0);
  EXPECT_TRUE(run.model().tied_embeddings());
  // 2 x 2 x 1 x 4.
  EXPECT_EQ(run.parallelism().gpus(), 16);
  EXPECT_EQ(run.parallelism().cp(), 1);
  EXPECT_EQ(run.parallelism().virtual_stages(), 1);
  // The level's.
  EXPECT_EQ(run.parallelism().zero_stage(), 1);
  EXPECT_TRUE(run.parallelism().sequence_parallel());
  EXPECT_EQ(run.training().precision(), v1::BF16);
  EXPECT_EQ(run.training().gradient_type(), v1::FP32);
  EXPECT_EQ(run.training().recompute(), v1::SELECTIVE);
  EXPECT_EQ(run.training().optimizer(), v1::LAMB);
  EXPECT_TRUE(run.training().dropout());
  EXPECT_EQ(run.schedule().name(), "1f1b");
  // pp.
  EXPECT_EQ(run.schedule().group_size(), 2);
  EXPECT_EQ(run.training().seq_len(), 2048);
  EXPECT_EQ(run.training().micro_batch(), 1);
  // The profile's.
  EXPECT_EQ(run.perturbation().jitter().sigma(), 0.02);
  EXPECT_EQ(run.perturbation().jitter().mode(), v1::NO_JITTER);
  EXPECT_EQ(run.perturbation().jitter().seed(), 1);
  EXPECT_EQ(run.simulation().iterations(), 3);
  EXPECT_EQ(run.simulation().fold(), v1::ON);
  EXPECT_EQ(run.simulation().granularity(), v1::CHUNK);
  EXPECT_EQ(run.simulation().engine(), v1::WORKLIST);
  EXPECT_EQ(run.simulation().flops_convention(), "model");
  EXPECT_EQ(loaded->profile, "constants");
  EXPECT_EQ(loaded->software, "level");
}

TEST(LoaderTest, DefaultsThatDependOnOtherFields) {
  // 128 GPUs / (tp 2 x pp 2) = 32 replicas.
  absl::StatusOr<LoadedRun> loaded = LoadRunFromText(
      "model { preset: \"tiny\" } cluster { preset: \"pod\" } software { preset: \"level\" }"
      "parallelism { tp: 2 pp: 2 gpus: 128 } training { global_batch: 64 }",
      "run.txtpb", FixtureOptions());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->run.parallelism().dp(), 32);

  // Nothing said of parallelism: one GPU, and nothing to shard the sequence over.
  loaded = LoadRunFromText(
      "model { preset: \"tiny\" } cluster { preset: \"pod\" } software { preset: \"level\" }"
      "training { global_batch: 4 }",
      "run.txtpb", FixtureOptions());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->run.parallelism().gpus(), 1);
  EXPECT_FALSE(loaded->run.parallelism().sequence_parallel());

  // Three stages a rank: 12 layers / (2 x 3) = 2 each.
  loaded = LoadGood({"parallelism.virtual_stages=3"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->run.schedule().name(), "interleaved-1f1b");

  // The level's cluster for a run that names only an accelerator.
  loaded = LoadRunFromText(
      "model { preset: \"tiny\" } cluster { accelerator { preset: \"gpu\" } }"
      "software { preset: \"level\" } training { global_batch: 4 }",
      "run.txtpb", FixtureOptions());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->run.cluster().name(), "pod");
  EXPECT_EQ(loaded->run.cluster().nodes(), 16);
}

TEST(LoaderTest, ResolvingTheResolvedTextChangesNothing) {
  const absl::StatusOr<LoadedRun> loaded =
      LoadGood({"perturbation.slow_gpus=[{rank: 3 factor: 1.1}, {rank: 4 factor: 1.3}]",
                "simulation.without=[CAUSE_HOST]", "name=\"t\303\244st \\\"quoted\\\"\""});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const std::string text = ResolvedText(loaded->run);
  // Complete in itself: no preset is named any more.
  const absl::StatusOr<LoadedRun> again = LoadRunFromText(text, "resolved.txtpb", LoadOptions{});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ResolvedText(again->run), text);
  EXPECT_EQ(again->sha256, loaded->sha256);
  EXPECT_THAT(text, StartsWith("# proto-file: orrery/v1/run.proto\n# proto-message: orrery.v1.Run\n"));
}

TEST(LoaderTest, DigestCoversAnswersOnly) {
  const absl::StatusOr<LoadedRun> loaded = LoadGood();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->sha256.size(), 64u);
  for (const char* same : {"simulation.fold=OFF", "simulation.granularity=OPERATOR", "simulation.engine=EVENT_QUEUE",
                           "training.seq_len=2048", "model={preset: \"tiny\"}"}) {
    const absl::StatusOr<LoadedRun> other = LoadGood({same});
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(other->sha256, loaded->sha256) << same;
  }
  for (const char* different :
       {"simulation.iterations=4", "training.global_batch=64", "cluster.node.nic.latency=3e-6"}) {
    const absl::StatusOr<LoadedRun> other = LoadGood({different});
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_NE(other->sha256, loaded->sha256) << different;
  }
}

TEST(LoaderTest, FileTextAndMessageAgree) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("run.txtpb", "# comment\n" + GoodText());
  const absl::StatusOr<LoadedRun> from_file = LoadRun(path, FixtureOptions());
  v1::Run written;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(GoodText(), &written));
  const absl::StatusOr<LoadedRun> from_message = ResolveRun(written, FixtureOptions());
  const absl::StatusOr<LoadedRun> from_text = LoadGood();
  ASSERT_TRUE(from_file.ok() && from_message.ok() && from_text.ok());
  EXPECT_EQ(from_file->sha256, from_text->sha256);
  EXPECT_EQ(from_message->sha256, from_text->sha256);
}

TEST(LoaderTest, ErrorsOfBuiltRunsHaveNoPosition) {
  v1::Run run;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(GoodText(), &run));
  run.mutable_parallelism()->set_tp(0);
  std::vector<SpecError> errors;
  EXPECT_FALSE(ResolveRun(run, FixtureOptions(), &errors).ok());
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].ToString(), "parallelism.tp: found 0; allowed: a whole number from 1 to 1024");
}

// Our reader takes everything that protobuf's own printer writes, and means the same by it.
TEST(TextReaderTest, AgreesWithProtobuf) {
  const absl::StatusOr<LoadedRun> loaded = LoadGood({"perturbation.slow_gpus=[{rank: 3 factor: 1.25}]"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  std::vector<std::string> texts = {
      ResolvedText(loaded->run),
      "name: 'single' \"double\" '\\n\\101\\xe2\\x82\\xac'",
      "parallelism < tp: 0x10, pp: 010; dp: -3 >",
      "perturbation { slow_gpus { rank: 1 factor: 2 } slow_gpus { factor: 1e3 rank: -1 } slow_gpus: [{rank: 7}, <rank: "
      "8>] }",
      "simulation { without: [CAUSE_HOST, CAUSE_DP_IS_NONE] }",
      "simulation { without: CAUSE_HOST without: CAUSE_BUBBLE without: [] fold: ON }",
      "training { dropout: t data_seconds: .5 precision: BF16 } # end",
      "training { dropout: False data_seconds: -inf seq_len: 9223372036854775807 }",
      "training { data_seconds: 1.5f } model: { tied_embeddings: 1 }",
      "name: \"a\" name: \"b\"",
      "name: \"a",
      "name \"a\"",
      "training { seq_len: 9223372036854775808 }",
      "training { ",
      "training { ] }",
      "} name: 'x'",
  };
  std::string compact;
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  ASSERT_TRUE(printer.PrintToString(loaded->run, &compact));
  texts.push_back(compact);
  for (const std::string& text : texts) {
    class : public google::protobuf::io::ErrorCollector {
      void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
    } silent;
    google::protobuf::TextFormat::Parser parser;
    parser.RecordErrorsTo(&silent);
    v1::Run theirs;
    const bool they_accept = parser.ParseFromString(text, &theirs);
    v1::Run ours;
    Origins origins;
    Diagnostics diagnostics;
    ReadText(text, diagnostics.AddSource("text", Diagnostics::Author::kFile), "", &ours, &origins, &diagnostics);
    EXPECT_EQ(diagnostics.ok(), they_accept) << text;
    if (they_accept) {
      EXPECT_EQ(ours.SerializeAsString(), theirs.SerializeAsString()) << text;
    }
  }
}

TEST(TextReaderTest, Utf8) {
  EXPECT_TRUE(IsUtf8("plain"));
  EXPECT_TRUE(IsUtf8("\303\244 \342\202\254 \360\237\230\200"));  // 2, 3 and 4 bytes
  EXPECT_FALSE(IsUtf8("\377"));
  EXPECT_FALSE(IsUtf8("\303"));              // cut off
  EXPECT_FALSE(IsUtf8("\300\200"));          // overlong NUL
  EXPECT_FALSE(IsUtf8("\340\200\200"));      // overlong
  EXPECT_FALSE(IsUtf8("\355\240\200"));      // surrogate U+D800
  EXPECT_FALSE(IsUtf8("\364\220\200\200"));  // U+110000
}

}  // namespace
}  // namespace orrery::spec
