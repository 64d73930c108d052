// What an import could not take at its word. Errors are statuses; these are not.
#ifndef ORRERY_TOPOLOGY_IMPORT_FINDINGS_H_
#define ORRERY_TOPOLOGY_IMPORT_FINDINGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::topology {

class Findings {
 public:
  // What the user should hear of. Of one `kind` the first few stand in full, the others are counted.
  void Warn(std::string_view kind, std::string message);
  // What the sources do not say and was filled in, and from where.
  void Assume(std::string message);
  // What a source says.
  void Note(std::string message);

  // In the order in which their kinds came up.
  std::vector<std::string> Warnings() const;
  const std::vector<std::string>& assumptions() const { return assumptions_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Kind {
    std::vector<std::string> first;
    std::int64_t more = 0;
  };
  std::vector<std::string> order_;
  std::map<std::string, Kind, std::less<>> kinds_;
  std::vector<std::string> assumptions_;
  std::vector<std::string> notes_;
};

// A place in a file, as messages begin: "fabric.txt:12".
std::string Place(std::string_view file, std::int64_t line);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_FINDINGS_H_
