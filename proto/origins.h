// Where every field of a message was written, and the errors found so far. Used inside the loader only.
#ifndef ORRERY_PROTO_ORIGINS_H_
#define ORRERY_PROTO_ORIGINS_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "proto/loader.h"

namespace orrery::spec {

// A place in a source of `Diagnostics`. Overrides have no line. Sources are numbered in the order in which they were
// read: the user's file, the overrides, then presets.
struct Position {
  int source = -1;  // -1: the field was built by code
  int line = 0;
  int column = 0;
};

// Field path ("cluster.accelerator.peak[0].data_type") -> where it was written.
class Origins {
 public:
  Origins() = default;
  // One that remembers nothing, for runs that are expected to have no errors: only messages of errors need positions.
  static Origins None() {
    Origins origins;
    origins.recording_ = false;
    return origins;
  }
  // Empty, and recording if this does.
  Origins Fresh() const { return recording_ ? Origins() : None(); }
  bool recording() const { return recording_; }

  void Set(const std::string& path, Position position) {
    if (recording_) positions_[path] = position;
  }
  // Unless it is known already.
  void SetFirst(const std::string& path, Position position) {
    if (recording_) positions_.try_emplace(path, position);
  }
  bool Has(const std::string& path) const { return positions_.contains(path); }
  // Of the field itself or of the innermost message around it that was written somewhere.
  Position Nearest(std::string path) const;
  // Forgets `path` and everything inside it.
  void Erase(const std::string& path);
  // Takes over what `above` knows; its positions win.
  void Overlay(const Origins& above);
  // The same the other way round: its own positions win.
  void Underlay(const Origins& below) { positions_.insert(below.positions_.begin(), below.positions_.end()); }

 private:
  bool recording_ = true;
  std::map<std::string, Position> positions_;
};

// "a" + "b" -> "a.b"; "" + "b" -> "b".
std::string JoinPath(std::string_view parent, std::string_view field);

class Diagnostics {
 public:
  enum class Author { kFile, kOverride, kPreset };

  // Number of a new source.
  int AddSource(std::string name, Author author);
  // The source must exist.
  Author AuthorOf(Position position) const { return sources_[static_cast<std::size_t>(position.source)].author; }

  void Error(Position position, const std::string& path, const std::string& message);
  // Reports at the first of `paths`, of which at least one is given, that an override set, else that the file wrote,
  // else that anybody wrote: what was said last is what is wrong most often, and what a preset says most rarely.
  void ErrorAtWriter(const Origins& origins, const std::vector<std::string>& paths, const std::string& message);
  void Warn(std::string message) { warnings_.push_back(std::move(message)); }

  // Whether an error was reported for `path` or something around it: what depends on it is not judged again.
  bool IsBad(std::string_view path) const;
  // Silences what could still be said about `path` without saying anything itself.
  void MarkBad(const std::string& path) { bad_.insert(path); }
  bool ok() const { return errors_.empty(); }
  // Errors beyond the first thousand, which are counted and not kept: something else was read than a spec.
  int dropped() const { return dropped_; }
  // In order of position.
  std::vector<SpecError> Sorted() const;
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Source {
    std::string name;
    Author author;
  };
  struct Entry {
    Position position;
    SpecError error;
  };
  std::vector<Source> sources_;
  std::vector<Entry> errors_;
  int dropped_ = 0;
  std::set<std::string, std::less<>> bad_;
  std::vector<std::string> warnings_;
};

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_ORIGINS_H_
