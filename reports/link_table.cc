#include "reports/link_table.h"

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/text_table.h"

namespace orrery::reports {
namespace {

std::string Users(const training::LinkReport& link) {
  std::string text;
  for (const training::LinkUser& user : link.users) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", user.kind, " ", FormatFixed(user.bytes / 1e9, 2));
  }
  return text;
}

std::string Text(const training::TransferDelay& delay) {
  if (delay.delay == Time()) return "-";
  return absl::StrCat(delay.transfer, ", ", FormatFixed(SecondsFromTime(delay.delay) * 1e3, 3), " ms");
}

std::string Taker(const training::LinkReport& link) {
  if (link.most_taken.delay == Time() || link.most_taken.transfer != link.most_delayed.transfer)
    return Text(link.most_taken);
  return Text({.transfer = "others like it", .delay = link.most_taken.delay});
}

}  // namespace

std::string LinkTable(const training::LinkSummary& summary) {
  if (summary.links.empty()) return "";
  using Align = TextTable::Align;
  TextTable table({{"link", Align::kLeft},
                   {"alike", Align::kRight},
                   {"GB/s", Align::kRight},
                   {"used", Align::kRight},
                   {"busy", Align::kRight},
                   {"delay ms", Align::kRight},
                   {"GB by", Align::kLeft},
                   {"slowed most", Align::kLeft},
                   {"of that most by", Align::kLeft}});
  for (const training::LinkReport& link : summary.links) {
    table.AddRow({absl::StrCat(link.from, " -> ", link.to), FormatCount(link.alike),
                  FormatFixed(static_cast<double>(link.capacity) / 1e9, 1), FormatPercent(link.utilisation),
                  FormatPercent(link.busy_share), FormatFixed(SecondsFromTime(link.delay) * 1e3, 3), Users(link),
                  Text(link.most_delayed), Taker(link)});
  }
  return table.Render();
}

}  // namespace orrery::reports
