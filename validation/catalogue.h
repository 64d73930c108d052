// What the presets say about the names that a record uses: accelerators by alias, model families, software levels. Read
// once per table, for a preset takes milliseconds to load.
#ifndef ORRERY_VALIDATION_CATALOGUE_H_
#define ORRERY_VALIDATION_CATALOGUE_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "orrery/v1/cluster.pb.h"
#include "orrery/v1/model.pb.h"
#include "orrery/v1/software.pb.h"
#include "proto/loader.h"

namespace orrery::validation {

class Catalogue {
 public:
  // An error where a preset of the spec path cannot be read.
  static absl::StatusOr<Catalogue> Load(const spec::LoadOptions& options);

  // Preset of the accelerator of that name or alias; empty where there is none.
  std::string AcceleratorPreset(std::string_view name) const;
  const v1::Accelerator& AcceleratorOf(const std::string& preset) const { return accelerators_.at(preset); }

  // A model of the family whose name `model` begins with, letter case aside, the longest such name; nullptr where there
  // is none. Models of a family differ in size only.
  const v1::Model* FamilyOf(std::string_view model) const;

  // nullptr where there is no such level.
  const v1::Software* Level(std::string_view name) const;
  // nullptr where there is no such cluster.
  const v1::Cluster* ClusterOf(std::string_view name) const;

 private:
  std::map<std::string, v1::Accelerator, std::less<>> accelerators_;  // by preset
  std::map<std::string, std::string, std::less<>> aliases_;           // alias -> preset
  std::map<std::string, v1::Model, std::less<>> families_;            // by family, lower case
  std::map<std::string, v1::Software, std::less<>> levels_;
  std::map<std::string, v1::Cluster, std::less<>> clusters_;
};

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_CATALOGUE_H_
