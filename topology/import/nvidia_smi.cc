#include "topology/import/nvidia_smi.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "topology/import/text.h"

namespace orrery::topology {
namespace {

// The nearer, the smaller.
enum class Relation { kSelf, kPix, kPxb, kPhb, kNode, kSys };

struct Cell {
  Relation relation = Relation::kSelf;
  std::int64_t nvlinks = 0;  // above 0: joined by NVLink; how they are joined over PCIe is then not printed
};

std::optional<Cell> ParseCell(std::string_view text) {
  static const std::map<std::string_view, Relation> kNames = {
      {"X", Relation::kSelf},    {"PIX", Relation::kPix}, {"PXB", Relation::kPxb}, {"PHB", Relation::kPhb},
      {"NODE", Relation::kNode}, {"SYS", Relation::kSys}, {"SOC", Relation::kSys}};  // SOC: SYS of older drivers
  if (const auto found = kNames.find(text); found != kNames.end()) return Cell{found->second, 0};
  if (!text.starts_with("NV")) return std::nullopt;
  const std::optional<std::int64_t> links = ParseCount(text.substr(2), 1024);
  if (!links.has_value() || *links == 0) return std::nullopt;
  return Cell{Relation::kSys, *links};
}

bool IsNumbered(std::string_view word, std::string_view prefix) {
  return word.starts_with(prefix) && ParseCount(word.substr(prefix.size()), 1'000'000).has_value();
}
bool IsGpu(std::string_view word) { return IsNumbered(word, "GPU"); }
// Older drivers put the device's own name where newer ones have NIC<i>.
bool IsNic(std::string_view word) {
  if (IsNumbered(word, "NIC")) return true;
  for (const std::string_view driver : {"mlx4_", "mlx5_", "bnxt_re", "irdma", "hfi1_", "ib", "roce", "efa_"}) {
    if (word.starts_with(driver)) return true;
  }
  return false;
}

// A row: its cells, and what stands behind them.
struct Row {
  std::int64_t line = 0;
  std::vector<Cell> cells;
  std::string cpu_affinity;
};

class Reader {
 public:
  Reader(const std::string& file, const NvidiaSmiOptions& options, Findings* findings)
      : file_(file), options_(options), findings_(*findings) {}

  absl::StatusOr<Server> Read(std::string_view text) {
    for (const TextLine& line : SplitLines(text)) ABSL_RETURN_IF_ERROR(ReadLine(line));
    if (columns_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(file_,
                                                     ": no matrix of nvidia-smi topo -m; allowed: a line that begins "
                                                     "with GPU0 and names all columns, and a row per GPU"));
    }
    for (std::size_t i = 0; i < gpus_; ++i) {
      if (rows_.contains(columns_[i])) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(Place(file_, header_line_), ": column ", columns_[i], " has no row of its own"));
    }
    server_.source = file_;
    server_.nvlink_known = true;
    PlaceDevices();
    ConnectGpus();
    Normalise(&server_, &findings_);
    return std::move(server_);
  }

 private:
  absl::Status Error(const TextLine& line, const std::string& message) const {
    return absl::InvalidArgumentError(absl::StrCat(Place(file_, line.number), ": ", message));
  }

  absl::Status ReadLine(const TextLine& line) {
    const std::vector<std::string_view> words = Words(line.text);
    if (words.empty()) return absl::OkStatus();
    if (columns_.empty()) {
      const bool is_header = IsGpu(words[0]) && (words.size() == 1 || !ParseCell(words[1]).has_value());
      return is_header ? ReadHeader(line, words) : absl::OkStatus();
    }
    if (words.size() == 2 && words[0].ends_with(":") && IsNumbered(words[0].substr(0, words[0].size() - 1), "NIC")) {
      legend_[std::string(words[0].substr(0, words[0].size() - 1))] = Printable(words[1]);
      return absl::OkStatus();
    }
    const bool is_row = (IsGpu(words[0]) || IsNic(words[0])) && !words[0].ends_with(":");
    return is_row ? ReadRow(line, words) : absl::OkStatus();
  }

  absl::Status ReadHeader(const TextLine& line, const std::vector<std::string_view>& words) {
    header_line_ = line.number;
    for (const std::string_view word : words) {
      if (!IsGpu(word) && !IsNic(word)) break;  // "CPU Affinity" and what follows it
      if (std::find(columns_.begin(), columns_.end(), word) != columns_.end()) {
        return Error(line, absl::StrCat("column ", Quote(word), " stands there twice"));
      }
      if (IsGpu(word) && gpus_ < columns_.size()) {
        return Error(line, absl::StrCat("column ", Quote(word), " behind those of NICs; allowed: GPUs first"));
      }
      columns_.emplace_back(Printable(word));
      if (IsGpu(word)) ++gpus_;
    }
    const std::size_t nics = columns_.size() - gpus_;
    if (gpus_ > kMostServerDevices || nics > kMostServerDevices) {
      return Error(
          line, absl::StrCat(gpus_, " GPUs and ", nics, " NICs; allowed: at most ", kMostServerDevices, " of either"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadRow(const TextLine& line, const std::vector<std::string_view>& words) {
    const std::string name = Printable(words[0]);
    const auto own = std::find(columns_.begin(), columns_.end(), name);
    if (own == columns_.end()) return Error(line, absl::StrCat("row ", Quote(name), " has no column of its own"));
    if (rows_.contains(name)) {
      return Error(line, absl::StrCat("row ", Quote(name), " stands in line ", rows_[name].line, " too"));
    }
    Row row{.line = line.number, .cells = {}, .cpu_affinity = {}};
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i + 1 >= words.size()) {
        return Error(line, absl::StrCat("row ", name, " has ", words.size() - 1, " cells; allowed: ", columns_.size(),
                                        ", one per GPU and NIC"));
      }
      const std::optional<Cell> cell = ParseCell(words[i + 1]);
      if (!cell.has_value()) {
        return Error(line, absl::StrCat("row ", name, ", column ", columns_[i], ": ", Quote(words[i + 1]),
                                        "; allowed: X, NV<links>, PIX, PXB, PHB, NODE, SYS"));
      }
      const bool is_diagonal = columns_[i] == name;
      if (is_diagonal != (cell->relation == Relation::kSelf)) {
        return Error(line, absl::StrCat("row ", name, ", column ", columns_[i], ": ", Quote(words[i + 1]),
                                        "; allowed: X where a device meets itself, and there only"));
      }
      row.cells.push_back(*cell);
    }
    if (columns_.size() + 1 < words.size()) row.cpu_affinity = Printable(words[columns_.size() + 1]);
    rows_[name] = std::move(row);
    return absl::OkStatus();
  }

  // Between devices by column, from whichever row there is; the nearer of the two where they differ.
  Cell Between(std::size_t a, std::size_t b) const {
    const auto row_a = rows_.find(columns_[a]);
    const auto row_b = rows_.find(columns_[b]);
    if (row_a == rows_.end() && row_b == rows_.end()) return {Relation::kSys, 0};
    if (row_a == rows_.end()) return row_b->second.cells[a];
    return row_a->second.cells[b];
  }

  // Devices joined by a relation as near as `farthest`, numbered by their first member; -1: alone.
  std::vector<int> Groups(Relation farthest) const {
    std::vector<int> group(columns_.size(), -1);
    int next = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (group[i] >= 0) continue;
      std::vector<std::size_t> members = {i};
      group[i] = next;
      for (std::size_t at = 0; at < members.size(); ++at) {
        for (std::size_t j = 0; j < columns_.size(); ++j) {
          const Cell cell = group[j] >= 0 ? Cell{Relation::kSys, 0} : Between(members[at], j);
          if (cell.nvlinks > 0 || cell.relation > farthest) continue;
          group[j] = next;
          members.push_back(j);
        }
      }
      if (members.size() == 1) {
        group[i] = -1;
      } else {
        ++next;
      }
    }
    return group;
  }

  // PIX: one PCIe switch. PXB: switches below one. CPUs by affinity; a NIC is at the CPU of the GPU nearest to it.
  void PlaceDevices() {
    const std::vector<int> pix = Groups(Relation::kPix);
    const std::vector<int> pxb = Groups(Relation::kPxb);
    std::map<std::string, int> cpu_of;
    for (std::size_t i = 0; i < gpus_; ++i) {
      const std::string& affinity = rows_.find(columns_[i])->second.cpu_affinity;
      const auto [found, is_new] = cpu_of.emplace(affinity, static_cast<int>(server_.cpus.size()));
      if (is_new) server_.cpus.push_back(affinity.empty() ? "cpu" : affinity);
      server_.gpus.push_back({.name = columns_[i], .pcie_switch = -1, .cpu = found->second});
    }
    for (std::size_t i = gpus_; i < columns_.size(); ++i) {
      Nic nic;
      const auto legend = legend_.find(columns_[i]);
      nic.name = legend == legend_.end() ? columns_[i] : legend->second;
      nic.cpu = server_.gpus[NearestGpu(i)].cpu;
      server_.nics.push_back(nic);
    }
    std::map<int, int> switch_of;
    std::map<int, int> upper_of;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      PcieDevice& device = i < gpus_ ? server_.gpus[i] : static_cast<PcieDevice&>(server_.nics[i - gpus_]);
      int above = -1;
      if (pxb[i] >= 0 && pxb[i] != -1 && IsUpper(pix, pxb, pxb[i]))
        above = SwitchFor(&upper_of, pxb[i], -1, device.cpu);
      device.pcie_switch = pix[i] >= 0 ? SwitchFor(&switch_of, pix[i], above, device.cpu) : above;
    }
  }

  // Whether a group joined by PXB is more than one joined by PIX.
  static bool IsUpper(const std::vector<int>& pix, const std::vector<int>& pxb, int group) {
    std::optional<int> only;
    for (std::size_t i = 0; i < pxb.size(); ++i) {
      if (pxb[i] != group) continue;
      if (pix[i] < 0 || (only.has_value() && *only != pix[i])) return true;
      only = pix[i];
    }
    return false;
  }

  int SwitchFor(std::map<int, int>* known, int group, int above, int cpu) {
    const auto [found, is_new] = known->emplace(group, static_cast<int>(server_.pcie_switches.size()));
    if (is_new) server_.pcie_switches.push_back({.name = "", .parent = above, .cpu = cpu});
    return found->second;
  }

  std::size_t NearestGpu(std::size_t column) const {
    std::size_t nearest = 0;
    for (std::size_t i = 1; i < gpus_; ++i) {
      if (Between(i, column).relation < Between(nearest, column).relation) nearest = i;
    }
    return nearest;
  }

  void ConnectGpus() {
    std::vector<v1::NvlinkPair> pairs;
    std::vector<std::int64_t> of_gpu(gpus_, 0);
    std::vector<std::int64_t> most(gpus_, 0);
    bool all_joined = gpus_ > 1;
    for (std::size_t a = 0; a < gpus_; ++a) {
      for (std::size_t b = a + 1; b < gpus_; ++b) {
        const std::int64_t links = LinksBetween(a, b);
        all_joined &= links > 0;
        if (links == 0) continue;
        v1::NvlinkPair pair;
        pair.set_a(static_cast<std::int64_t>(a));
        pair.set_b(static_cast<std::int64_t>(b));
        pair.set_links(links);
        pairs.push_back(pair);
        for (const std::size_t gpu : {a, b}) {
          of_gpu[gpu] += links;
          most[gpu] = std::max(most[gpu], links);
        }
      }
    }
    if (pairs.empty()) return;
    const bool through_switches =
        all_joined && *std::max_element(of_gpu.begin(), of_gpu.end()) > options_.nvlinks_per_gpu;
    if (!through_switches) {
      server_.pairs = std::move(pairs);
      findings_.Note(absl::StrCat(file_, ": NVLinks join GPUs directly: one GPU's add up to ",
                                  *std::max_element(of_gpu.begin(), of_gpu.end()), " of at most ",
                                  options_.nvlinks_per_gpu));
      return;
    }
    findings_.Assume(absl::StrCat("NVLinks go through NVSwitches: directly, one GPU would need ",
                                  *std::max_element(of_gpu.begin(), of_gpu.end()), " and has ",
                                  options_.nvlinks_per_gpu, " at most; the number of NVSwitches, ", options_.nvswitches,
                                  ", is not in ", file_));
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
      std::vector<int> links;
      for (std::int64_t i = 0; i < options_.nvswitches; ++i) {
        links.push_back(static_cast<int>((most[gpu] * (i + 1) + options_.nvswitches - 1) / options_.nvswitches -
                                         (most[gpu] * i + options_.nvswitches - 1) / options_.nvswitches));
      }
      server_.nvswitch_links.push_back(std::move(links));
    }
  }

  std::int64_t LinksBetween(std::size_t a, std::size_t b) {
    const Row& row_a = rows_.find(columns_[a])->second;
    const Row& row_b = rows_.find(columns_[b])->second;
    const std::int64_t there = row_a.cells[b].nvlinks;
    const std::int64_t back = row_b.cells[a].nvlinks;
    if (there != back) {
      findings_.Warn("NVLinks that differ by direction",
                     absl::StrCat(Place(file_, row_b.line), ": ", there, " NVLinks from ", columns_[a], " to ",
                                  columns_[b], " and ", back, " back; taken: ", std::min(there, back)));
    }
    return std::min(there, back);
  }

  const std::string& file_;
  const NvidiaSmiOptions options_;
  Findings& findings_;
  Server server_;
  std::int64_t header_line_ = 0;
  std::vector<std::string> columns_;  // GPUs, then NICs
  std::size_t gpus_ = 0;
  std::map<std::string, Row> rows_;
  std::map<std::string, std::string> legend_;
};

}  // namespace

absl::StatusOr<Server> ReadNvidiaSmi(std::string_view text, const std::string& file, const NvidiaSmiOptions& options,
                                     Findings* findings) {
  return Reader(file, options, findings).Read(text);
}

}  // namespace orrery::topology
