#include "validation/catalogue.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"

namespace orrery::validation {
namespace {

template <typename Message>
absl::StatusOr<std::map<std::string, Message, std::less<>>> LoadAll(std::string_view kind,
                                                                    const spec::LoadOptions& options) {
  std::map<std::string, Message, std::less<>> all;
  ABSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, spec::ListPresets(kind, options));
  for (const std::string& name : names) ABSL_RETURN_IF_ERROR(spec::LoadPreset(name, options, &all[name]));
  return all;
}

template <typename Message>
const Message* Find(const std::map<std::string, Message, std::less<>>& map, std::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

absl::StatusOr<Catalogue> Catalogue::Load(const spec::LoadOptions& options) {
  Catalogue catalogue;
  ABSL_ASSIGN_OR_RETURN(catalogue.accelerators_, LoadAll<v1::Accelerator>("accelerators", options));
  ABSL_ASSIGN_OR_RETURN(catalogue.levels_, LoadAll<v1::Software>("software", options));
  ABSL_ASSIGN_OR_RETURN(catalogue.clusters_, LoadAll<v1::Cluster>("clusters", options));
  using Models = std::map<std::string, v1::Model, std::less<>>;
  ABSL_ASSIGN_OR_RETURN(const Models models, LoadAll<v1::Model>("models", options));
  for (const auto& [preset, accelerator] : catalogue.accelerators_) {
    catalogue.aliases_.emplace(preset, preset);
    for (const std::string& alias : accelerator.aliases()) catalogue.aliases_.emplace(alias, preset);
  }
  for (const auto& [preset, model] : models) {
    if (model.has_family()) catalogue.families_.emplace(absl::AsciiStrToLower(model.family()), model);
  }
  return catalogue;
}

std::string Catalogue::AcceleratorPreset(std::string_view name) const {
  const std::string* preset = Find(aliases_, name);
  return preset == nullptr ? std::string() : *preset;
}

const v1::Model* Catalogue::FamilyOf(std::string_view model) const {
  const std::string name = absl::AsciiStrToLower(std::string(model));
  const v1::Model* longest = nullptr;
  std::size_t length = 0;
  for (const auto& [family, member] : families_) {
    if (name.starts_with(family) && family.size() >= length) {
      longest = &member;
      length = family.size();
    }
  }
  return longest;
}

const v1::Software* Catalogue::Level(std::string_view name) const { return Find(levels_, name); }

const v1::Cluster* Catalogue::ClusterOf(std::string_view name) const { return Find(clusters_, name); }

}  // namespace orrery::validation
