// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Looks at a machine for domains that make a difference.
#include "omp/several_domains.h"

#include "omp/environment.h"
#include "omp/places.h"
#include "omp/places_sysfs.h"

namespace bosk::omp {

using topology::Domain;
using topology::Kind;
using topology::Level;
using topology::Machine;

bool has_several_domains(const Machine& machine) {
  const Level& cores = *machine.level(Kind::kCore);
  for (const Domain& d : machine.domains())
    if (d.parent != nullptr && cores.of_pu[d.first_pu] != cores.of_pu[d.last_pu]) return true;
  return false;
}

bool may_have_several_domains() {
  const ProcessIcvs& process = process_icvs();
  if (process.available_cpus < 2) return false;
  const PlaceSource source = sysfs_place_source("/sys/devices/system");
  const auto several = [&](PlaceKind kind) {
    PlaceList places;
    const bool found =
        source.list(source.self, kind, *process.cpus, 2, &places) && places.count() > 1;
    places.release();
    return found;
  };
  // Two CPUs share what others do not only where there are others.
  return (process.available_cpus > 2 && several(PlaceKind::kLlCaches)) ||
         several(PlaceKind::kNumaDomains);
}

bool has_several_memories(const Machine& machine) {
  if (machine.level(Kind::kNode)->n_domains > 1) return true;
  const Level& caches = machine.cache_level();
  if (caches.n_domains < 2) return false;
  // A virtual machine that tells of no common cache seems to have one for each core.
  const Level& cores = *machine.level(Kind::kCore);
  for (uint32_t i = 0; i < caches.n_domains; ++i) {
    const Domain& d = machine.domain_array[caches.domains[i]];
    if (cores.of_pu[d.first_pu] != cores.of_pu[d.last_pu]) return true;
  }
  return false;
}

}  // namespace bosk::omp
