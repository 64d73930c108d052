#include "topology/import/xml.h"

#include <expat.h>

#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "topology/import/findings.h"
#include "topology/import/text.h"

namespace orrery::topology {
namespace {

class TreeBuilder {
 public:
  explicit TreeBuilder(XML_Parser parser) : parser_(parser) {
    XML_SetUserData(parser, this);
    XML_SetElementHandler(parser, OnStart, OnEnd);
    XML_SetStartDoctypeDeclHandler(parser, OnDoctype);
  }

  const std::string& error() const { return error_; }
  std::int64_t error_line() const { return error_line_; }
  XmlElement TakeRoot() { return std::move(root_); }

 private:
  static TreeBuilder* Of(void* self) { return static_cast<TreeBuilder*>(self); }
  static void OnStart(void* self, const XML_Char* name, const XML_Char** attributes) {
    Of(self)->Start(name, attributes);
  }
  static void OnEnd(void* self, const XML_Char*) {
    if (Of(self)->error_.empty()) Of(self)->open_.pop_back();
  }
  static void OnDoctype(void* self, const XML_Char*, const XML_Char*, const XML_Char*, int) {
    Of(self)->Stop("a document type (<!DOCTYPE>); allowed: elements and attributes only");
  }

  std::int64_t Line() const { return static_cast<std::int64_t>(XML_GetCurrentLineNumber(parser_)); }

  void Stop(std::string error) {
    if (!error_.empty()) return;
    error_ = std::move(error);
    error_line_ = Line();
    XML_StopParser(parser_, XML_FALSE);
  }

  void Start(const XML_Char* name, const XML_Char** attributes) {
    if (!error_.empty()) return;
    if (static_cast<int>(open_.size()) >= kDeepestXml) {
      return Stop(absl::StrCat("elements nested deeper than ", kDeepestXml, " levels"));
    }
    if (++elements_ > kMostXmlElements) return Stop(absl::StrCat("more than ", kMostXmlElements, " elements"));
    XmlElement element{.name = name, .line = Line()};
    for (; *attributes != nullptr; attributes += 2) element.attributes.emplace_back(attributes[0], attributes[1]);
    // Siblings move when one joins them, but those are closed: `open_` points to ancestors alone.
    XmlElement* place = &root_;
    if (open_.empty()) {
      root_ = std::move(element);
    } else {
      place = &open_.back()->children.emplace_back(std::move(element));
    }
    open_.push_back(place);
  }

  XML_Parser parser_;
  XmlElement root_;
  std::vector<XmlElement*> open_;
  std::int64_t elements_ = 0;
  std::string error_;
  std::int64_t error_line_ = 0;
};

}  // namespace

const std::string* XmlElement::Find(std::string_view attribute) const {
  for (const auto& [key, value] : attributes) {
    if (key == attribute) return &value;
  }
  return nullptr;
}

absl::StatusOr<XmlElement> ParseXml(std::string_view text, const std::string& file) {
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, decltype(&XML_ParserFree)> parser(XML_ParserCreate(nullptr),
                                                                                             &XML_ParserFree);
  if (parser == nullptr) return absl::InternalError("no memory for an XML parser");
  TreeBuilder builder(parser.get());
  if (text.size() > (std::size_t{1} << 30))
    return absl::InvalidArgumentError(absl::StrCat(file, ": larger than 1 GiB"));
  if (XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE) == XML_STATUS_OK) {
    return builder.TakeRoot();
  }
  if (!builder.error().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(Place(file, builder.error_line()), ": ", builder.error()));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Place(file, static_cast<std::int64_t>(XML_GetCurrentLineNumber(parser.get()))),
                   ": not well-formed XML: ", XML_ErrorString(XML_GetErrorCode(parser.get()))));
}

absl::Status XmlError(const std::string& file, const XmlElement& element, const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat(
      Place(file, element.line), ": <", Quote(element.name).substr(1, Quote(element.name).size() - 2), ">: ", message));
}

}  // namespace orrery::topology
