// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asks /sys once how many memory nodes the process has CPUs on, and the kernel where a thread is.
#include "omp/several_nodes.h"

#include <sched.h>

#include <atomic>

#include "base/cpu.h"
#include "omp/environment.h"
#include "omp/places.h"
#include "omp/places_sysfs.h"

namespace bosk::omp {

namespace detail {
constinit std::atomic<Nodes> nodes{Nodes::kUnknown};
}

namespace {

bool look() {
  const ProcessIcvs& process = process_icvs();
  if (process.available_cpus < 2) return false;
  const PlaceSource source = sysfs_place_source();
  PlaceList nodes;
  const bool several =
      source.list(source.self, PlaceKind::kNumaDomains, *process.cpus, 2, &nodes) &&
      nodes.count() > 1;
  nodes.release();
  return several;
}

}  // namespace

bool several_nodes() {
  using detail::Nodes;
  // relaxed: who comes at the same time finds the same.
  Nodes known = detail::nodes.load(std::memory_order_relaxed);
  if (BOSK_UNLIKELY(known == Nodes::kUnknown)) {
    known = look() ? Nodes::kSeveral : Nodes::kOne;
    detail::nodes.store(known, std::memory_order_relaxed);
  }
  return known == Nodes::kSeveral;
}

uint32_t node_here() {
  unsigned cpu, node;
  return getcpu(&cpu, &node) == 0 ? node + 1 : 0;
}

}  // namespace bosk::omp
