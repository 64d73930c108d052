// XML files as trees, by Expat. Small ones only, and without document types: no entity can expand.
#ifndef ORRERY_TOPOLOGY_IMPORT_XML_H_
#define ORRERY_TOPOLOGY_IMPORT_XML_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace orrery::topology {

struct XmlElement {
  std::string name;
  std::int64_t line = 0;                                             // where it begins, from 1
  std::vector<std::pair<std::string, std::string>> attributes = {};  // as written
  std::vector<XmlElement> children = {};

  // Null where there is none.
  const std::string* Find(std::string_view attribute) const;
};

inline constexpr int kDeepestXml = 64;
inline constexpr std::int64_t kMostXmlElements = 500'000;

// The root. INVALID_ARGUMENT "file:line: ..." where it is not well-formed, has a document type, or is deeper or larger
// than the limits above.
absl::StatusOr<XmlElement> ParseXml(std::string_view text, const std::string& file);

// INVALID_ARGUMENT at the element's place.
absl::Status XmlError(const std::string& file, const XmlElement& element, const std::string& message);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_XML_H_
