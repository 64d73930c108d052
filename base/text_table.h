// A table of text with aligned columns, a header and a rule below it.
#ifndef ORRERY_BASE_TEXT_TABLE_H_
#define ORRERY_BASE_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace orrery {

class TextTable {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string name;
    Align align = Align::kLeft;
  };

  explicit TextTable(std::vector<Column> columns);

  // One cell per column; fewer cells leave the last columns empty.
  void AddRow(std::vector<std::string> cells);
  // A line of dashes across the table before the next row.
  void AddRule();

  // Every line ends in '\n' and none in a space. Columns stand two spaces apart; width is counted in UTF-8 characters.
  std::string Render() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // a row without cells is a rule
};

}  // namespace orrery

#endif  // ORRERY_BASE_TEXT_TABLE_H_
