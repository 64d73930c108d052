#include "proto/text_writer.h"

#include <array>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/sha256.h"
#include "google/protobuf/text_format.h"
#include "proto/loader.h"
#include "proto/rules.h"

namespace orrery::spec {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr char kHeader[] = "# proto-file: orrery/v1/run.proto\n# proto-message: orrery.v1.Run\n";

// One line of the template. `value` "" opens the block `field`; a field "" closes the last one opened. Optional fields
// are written as comments with what they default to.
struct Line {
  std::string_view field = {};
  std::string_view value = {};
  bool is_optional = false;
  std::string_view remark = {};
};

constexpr std::array kTemplate = {
    Line{"name", "\"my run\"", true, "stands in results"},
    Line{"model"},
    Line{"preset", "\"gpt-22b\"", false, "orrery spec list models; any field of it can be written below"},
    Line{"layers", "48", true, ""},
    Line{"hidden", "6144", true, ""},
    Line{"heads", "64", true, ""},
    Line{"vocab", "51200", true, ""},
    Line{"attention_window", "0", true, "0: full attention"},
    Line{},
    Line{"cluster"},
    Line{"preset", "\"selene\"", false, "orrery spec list clusters"},
    Line{"nodes", "560", true, ""},
    Line{},
    Line{"software"},
    Line{"preset", "\"megatron-lm-2022\"", false, "orrery spec list software; it also sets the defaults below"},
    Line{},
    Line{"parallelism"},
    Line{"tp", "8", false, "tensor"},
    Line{"pp", "1", false, "pipeline"},
    Line{"dp", "4", false, "data; default: gpus / (tp pp)"},
    Line{"virtual_stages", "1", true, "stages per pipeline rank"},
    Line{"zero_stage", "0", true, "default: the software level's"},
    Line{"sequence_parallel", "true", true, "default: the software level's where tp > 1"},
    Line{},
    Line{"training"},
    Line{"seq_len", "2048", false, ""},
    Line{"micro_batch", "4", false, ""},
    Line{"global_batch", "64", false, "a multiple of dp x micro_batch"},
    Line{"precision", "FP16", true, "default: the software level's"},
    Line{"recompute", "SELECTIVE", true, "default: the software level's"},
    Line{},
    Line{"schedule"},
    Line{"name", "\"1f1b\"", true, "orrery schedule list names them"},
    Line{},
    Line{"perturbation"},
    Line{"jitter"},
    Line{"mode", "EXPECTED", false, "default: NO_JITTER"},
    Line{"sigma", "0.01", true, "default: the accelerator's profile"},
    Line{},
    Line{"slow_gpus", "{ rank: 0 factor: 1.1 }", true, "can be repeated"},
    Line{},
    Line{"simulation"},
    Line{"iterations", "3", true, ""},
    Line{"fold", "ON", true, ""},
    Line{"granularity", "CHUNK", true, ""},
    Line{},
};

// The field of `type` that a line names, or our template is wrong.
const FieldDescriptor* FieldOf(const Descriptor* type, std::string_view name) {
  const FieldDescriptor* field = type->FindFieldByName(std::string(name));
  ORRERY_CHECK(field != nullptr);
  return field;
}

}  // namespace

std::string ResolvedText(const v1::Run& run) {
  std::string body;
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  ORRERY_CHECK(printer.PrintToString(run, &body));
  return absl::StrCat(kHeader, "\n", body);
}

std::string SpecSha256(const v1::Run& run) {
  v1::Run answer = run;
  answer.mutable_simulation()->clear_fold();
  answer.mutable_simulation()->clear_granularity();
  answer.mutable_simulation()->clear_engine();
  return Sha256Hex(ResolvedText(answer));
}

std::string NewRunText() {
  std::string text =
      absl::StrCat(kHeader, "#\n# Fields behind a # are optional and show an example or their default.\n");
  std::vector<const Descriptor*> types = {v1::Run::descriptor()};
  for (const Line& line : kTemplate) {
    if (line.field.empty()) {
      types.pop_back();
      absl::StrAppend(&text, std::string(2 * (types.size() - 1), ' '), "}\n");
      continue;
    }
    const FieldDescriptor* field = FieldOf(types.back(), line.field);
    const std::string indent(2 * (types.size() - 1), ' ');
    if (line.value.empty()) {
      absl::StrAppend(&text, types.size() == 1 ? "\n" : "", indent, field->name(), " {\n");
      types.push_back(field->message_type());
      continue;
    }
    const bool is_block = field->message_type() != nullptr;
    const bool says_more = field->cpp_type() != FieldDescriptor::CPPTYPE_STRING && !is_block;
    absl::StrAppend(&text, indent, line.is_optional ? "# " : "", field->name(), is_block ? " " : ": ",
                    std::string(line.value), says_more || !line.remark.empty() ? "  # " : "",
                    says_more ? AllowedValues(field) : "", says_more && !line.remark.empty() ? "; " : "",
                    std::string(line.remark), "\n");
  }
  return text;
}

}  // namespace orrery::spec
