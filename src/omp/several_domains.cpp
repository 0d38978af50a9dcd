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
  if (process.available_cpus < 3) return false;
  const PlaceSource source = sysfs_place_source("/sys/devices/system");
  bool several = false;
  for (const PlaceKind kind : {PlaceKind::kLlCaches, PlaceKind::kNumaDomains}) {
    PlaceList places;
    several = several ||
              (source.list(source.self, kind, *process.cpus, 2, &places) && places.count() > 1);
    places.release();
  }
  return several;
}

bool has_several_memories(const Machine& machine) {
  const Level& cores = *machine.level(Kind::kCore);
  for (const Level* level : {&machine.cache_level(), machine.level(Kind::kNode)}) {
    if (level->n_domains < 2) continue;
    // A virtual machine that tells of no common cache seems to have one for each core.
    for (uint32_t i = 0; i < level->n_domains; ++i) {
      const Domain& d = machine.domain_array[level->domains[i]];
      if (cores.of_pu[d.first_pu] != cores.of_pu[d.last_pu]) return true;
    }
  }
  return false;
}

}  // namespace bosk::omp
