#include "topology/import/findings.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace orrery::topology {
namespace {

constexpr std::size_t kShown = 5;  // of a kind

}  // namespace

void Findings::Warn(std::string_view kind, std::string message) {
  auto found = kinds_.find(kind);
  if (found == kinds_.end()) {
    order_.emplace_back(kind);
    found = kinds_.emplace(std::string(kind), Kind{}).first;
  }
  if (found->second.first.size() < kShown) {
    found->second.first.push_back(std::move(message));
  } else {
    ++found->second.more;
  }
}

void Findings::Assume(std::string message) { assumptions_.push_back(std::move(message)); }
void Findings::Note(std::string message) { notes_.push_back(std::move(message)); }

std::vector<std::string> Findings::Warnings() const {
  std::vector<std::string> lines;
  for (const std::string& name : order_) {
    const Kind& kind = kinds_.find(name)->second;
    lines.insert(lines.end(), kind.first.begin(), kind.first.end());
    if (kind.more > 0) lines.push_back(absl::StrCat("and ", kind.more, " more of this kind: ", name));
  }
  return lines;
}

std::string Place(std::string_view file, std::int64_t line) { return absl::StrCat(std::string(file), ":", line); }

}  // namespace orrery::topology
