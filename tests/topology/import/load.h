// A cluster's text as a topology, by way of the spec loader.
#ifndef ORRERY_TESTS_TOPOLOGY_IMPORT_LOAD_H_
#define ORRERY_TESTS_TOPOLOGY_IMPORT_LOAD_H_

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/status/statusor.h"
#include "proto/loader.h"
#include "topology/topology.h"

namespace orrery::topology {

inline std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// As a user's own preset, which passes through the reader, the presets and the rules.
inline absl::StatusOr<Topology> LoadTopology(const std::string& text) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("orrery_import_" + std::to_string(getpid()));
  fs::create_directories(folder / "clusters");
  std::ofstream(folder / "clusters/imported.txtpb", std::ios::binary) << text;
  spec::LoadOptions options;
  options.spec_path = {folder.string(), ORRERY_SOURCE_DIR "/specs"};
  v1::Cluster cluster;
  const absl::Status loaded = spec::LoadPreset("imported", options, &cluster);
  fs::remove_all(folder);
  if (!loaded.ok()) return loaded;
  return Topology::Build(cluster);
}

}  // namespace orrery::topology

#endif  // ORRERY_TESTS_TOPOLOGY_IMPORT_LOAD_H_
