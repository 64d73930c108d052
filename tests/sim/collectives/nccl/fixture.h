// Communicators on the shipped clusters.
#ifndef ORRERY_TESTS_SIM_COLLECTIVES_NCCL_FIXTURE_H_
#define ORRERY_TESTS_SIM_COLLECTIVES_NCCL_FIXTURE_H_

#include <cstdint>
#include <iterator>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "sim/collectives/nccl/model.h"

namespace orrery::collectives::nccl {

inline spec::LoadOptions Shipped() { return {.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = {}}; }

inline const Library& Shelf() {
  static const Library* const library = [] {
    absl::StatusOr<Library> loaded = Library::Load(Shipped());
    ORRERY_CHECK(loaded.ok());
    return new Library(*std::move(loaded));
  }();
  return *library;
}

inline v1::Cluster Preset(const std::string& name) {
  v1::Cluster cluster;
  ORRERY_CHECK(spec::LoadPreset(name, Shipped(), &cluster).ok());
  return cluster;
}

inline Communicator On(const std::string& preset, std::int64_t ranks, std::int64_t nodes) {
  const v1::Cluster cluster = Preset(preset);
  const absl::StatusOr<Communicator> comm = DescribeCommunicator(cluster, EvenPlacement(cluster, ranks, nodes));
  ORRERY_CHECK(comm.ok());
  return *comm;
}

inline const v1::NcclVersion& Tables(const std::string& version) { return **Shelf().Version(version); }

// The shipped constants, by the first GPU that they serve.
inline const v1::NcclTimes& TimesFrom(std::int64_t compute_capability) {
  static const auto* const times = [] {
    auto* const loaded = new std::map<std::int64_t, v1::NcclTimes>();
    for (const std::int64_t from : {80, 90, 100}) {
      ORRERY_CHECK(spec::LoadPreset(absl::StrCat("sm", from), Shipped(), &(*loaded)[from]).ok());
    }
    return loaded;
  }();
  return std::prev(times->upper_bound(compute_capability))->second;
}
inline const v1::NcclTimes& TimesOf(const Communicator& comm) { return TimesFrom(comm.compute_capability); }

}  // namespace orrery::collectives::nccl

#endif  // ORRERY_TESTS_SIM_COLLECTIVES_NCCL_FIXTURE_H_
