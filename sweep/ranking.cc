#include "sweep/ranking.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/text_table.h"

namespace orrery::sweep {

void Ranking::Add(const Row& row) {
  if (row.status != Status::kOk) {
    ++(row.status == Status::kRefused ? refused_ : unfitting_);
    if (first_reason_.empty()) first_reason_ = row.reason;
    return;
  }
  ++ok_;
  const auto better = [](const Row& a, const Row& b) {
    return a.figures.tokens_per_s_per_gpu > b.figures.tokens_per_s_per_gpu;
  };
  best_.insert(std::upper_bound(best_.begin(), best_.end(), row, better), row);
  if (best_.size() > top_) best_.pop_back();
}

std::string Ranking::Text(const std::vector<std::string>& fields) const {
  std::string text =
      absl::StrCat(FormatCount(rows()), rows() == 1 ? " point: " : " points: ", FormatCount(ok_), " ok, ",
                   FormatCount(unfitting_), " do not fit, ", FormatCount(refused_), " refused\n");
  if (ok_ == 0 && !first_reason_.empty()) absl::StrAppend(&text, "no point is legal; the first: ", first_reason_, "\n");
  if (best_.empty()) return text;
  std::vector<TextTable::Column> columns;
  for (const std::string& field : fields) columns.push_back({field, TextTable::Align::kLeft});
  for (const char* const name : {"iteration time", "MFU", "tokens/s/GPU", "bubble", "exposed", "peak memory"}) {
    columns.push_back({name, TextTable::Align::kRight});
  }
  TextTable table(std::move(columns));
  for (const Row& row : best_) {
    const Figures& figures = row.figures;
    std::vector<std::string> cells = row.fields;
    cells.push_back(FormatSeconds(figures.iteration_time_s));
    cells.push_back(FormatPercent(figures.mfu));
    cells.push_back(FormatFixed(figures.tokens_per_s_per_gpu, 1));
    cells.push_back(FormatPercent(figures.bubble_fraction));
    cells.push_back(FormatPercent(figures.exposed_communication_fraction));
    cells.push_back(FormatBytes(Bytes(figures.device_peak_bytes)));
    table.AddRow(std::move(cells));
  }
  return absl::StrCat(text, "best by tokens per second and GPU:\n", table.Render());
}

}  // namespace orrery::sweep
