#include "base/text_table.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace orrery {
namespace {

constexpr std::size_t kGap = 2;

// Characters of UTF-8 text: its bytes less the continuation bytes (10xxxxxx).
std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

}  // namespace

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) { ORRERY_CHECK(!columns_.empty()); }

void TextTable::AddRow(std::vector<std::string> cells) {
  ORRERY_CHECK(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void TextTable::AddRule() { rows_.emplace_back(); }

std::string TextTable::Render() const {
  std::vector<std::string> header;
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) {
    header.push_back(column.name);
    widths.push_back(Width(column.name));
  }
  for (const std::vector<std::string>& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::size_t total = kGap * (columns_.size() - 1);
  for (const std::size_t width : widths) total += width;

  std::string text;
  const auto append_rule = [&] { text.append(total, '-').push_back('\n'); };
  const auto append_row = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t padding = widths[i] - Width(row[i]);
      if (i > 0) text.append(kGap, ' ');
      if (columns_[i].align == Align::kRight) text.append(padding, ' ');
      text += row[i];
      if (columns_[i].align == Align::kLeft) text.append(padding, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text.push_back('\n');
  };
  append_row(header);
  append_rule();
  for (const std::vector<std::string>& row : rows_) {
    if (row.empty()) {
      append_rule();
    } else {
      append_row(row);
    }
  }
  return text;
}

}  // namespace orrery
