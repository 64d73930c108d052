// Communicators on the shipped clusters.
#ifndef ORRERY_TESTS_SIM_COLLECTIVES_NCCL_FIXTURE_H_
#define ORRERY_TESTS_SIM_COLLECTIVES_NCCL_FIXTURE_H_

#include <cstdint>
#include <string>

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

inline Communicator On(const std::string& preset, std::int64_t ranks, std::int64_t nodes) {
  v1::Cluster cluster;
  ORRERY_CHECK(spec::LoadPreset(preset, Shipped(), &cluster).ok());
  const absl::StatusOr<Communicator> comm = DescribeCommunicator(cluster, EvenPlacement(cluster, ranks, nodes));
  ORRERY_CHECK(comm.ok());
  return *comm;
}

inline const v1::NcclVersion& Tables(const std::string& version) { return **Shelf().Version(version); }
inline const v1::NcclTimes& TimesOf(const Communicator& comm) { return **Shelf().Times(comm.compute_capability); }

}  // namespace orrery::collectives::nccl

#endif  // ORRERY_TESTS_SIM_COLLECTIVES_NCCL_FIXTURE_H_
