#include "proto/origins.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace orrery::spec {
namespace {

// Removes the last step of a path: "a.b[0].c" -> "a.b[0]" -> "a.b" -> "a" -> "".
std::string_view WithoutLastStep(std::string_view path) {
  const std::size_t cut = path.find_last_of(".[");
  return path.substr(0, cut == std::string_view::npos ? 0 : cut);
}

}  // namespace

std::string SpecError::ToString() const {
  std::string text = file;
  if (line > 0) absl::StrAppend(&text, ":", line, ":", column);
  if (!text.empty()) text += ": ";
  if (!field.empty()) absl::StrAppend(&text, field, ": ");
  return text + message;
}

Position Origins::Nearest(std::string path) const {
  while (true) {
    if (const auto it = positions_.find(path); it != positions_.end()) return it->second;
    if (path.empty()) return Position{};
    path.resize(WithoutLastStep(path).size());
  }
}

void Origins::Erase(const std::string& path) {
  positions_.erase(path);
  for (const char* step : {".", "["}) {
    const std::string prefix = path + step;
    auto it = positions_.lower_bound(prefix);
    while (it != positions_.end() && it->first.starts_with(prefix)) it = positions_.erase(it);
  }
}

void Origins::Overlay(const Origins& above) {
  for (const auto& [path, position] : above.positions_) positions_[path] = position;
}

std::string JoinPath(std::string_view parent, std::string_view field) {
  std::string path(parent);
  if (!path.empty()) path += '.';
  return path.append(field);
}

int Diagnostics::AddSource(std::string name, Author author) {
  sources_.push_back({std::move(name), author});
  return static_cast<int>(sources_.size()) - 1;
}

void Diagnostics::Error(Position position, const std::string& path, const std::string& message) {
  constexpr std::size_t kMostErrors = 1000;
  bad_.insert(path);
  if (errors_.size() == kMostErrors) {
    ++dropped_;
    return;
  }
  SpecError error{.field = path, .message = message};
  if (position.source >= 0) {
    error.file = sources_[static_cast<std::size_t>(position.source)].name;
    error.line = position.line;
    error.column = position.column;
  }
  errors_.push_back({position, std::move(error)});
}

void Diagnostics::ErrorAtWriter(const Origins& origins, const std::vector<std::string>& paths,
                                const std::string& message) {
  auto blamed = paths.end();
  for (const Author author : {Author::kOverride, Author::kFile, Author::kPreset}) {
    if (blamed != paths.end()) break;
    blamed = std::find_if(paths.begin(), paths.end(), [&](const std::string& path) {
      return origins.Has(path) && AuthorOf(origins.Nearest(path)) == author;
    });
  }
  if (blamed == paths.end()) blamed = paths.begin();
  Error(origins.Nearest(*blamed), *blamed, message);
}

bool Diagnostics::IsBad(std::string_view path) const {
  while (!bad_.empty() && !path.empty()) {
    if (bad_.contains(path)) return true;
    path = WithoutLastStep(path);
  }
  return false;
}

std::vector<SpecError> Diagnostics::Sorted() const {
  std::vector<std::size_t> order(errors_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Errors of one place stay in the order in which they were found, which is that of the schema.
  const auto key = [this](std::size_t i) {
    const Position& position = errors_[i].position;
    return std::tuple(position.source, position.line, position.column, i);
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::vector<SpecError> sorted;
  sorted.reserve(order.size());
  for (const std::size_t i : order) sorted.push_back(errors_[i].error);
  return sorted;
}

}  // namespace orrery::spec
