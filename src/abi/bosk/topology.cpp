// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/topology.h.
#include <bosk/topology.h>

#include "abi/bosk/answer.h"
#include "abi/gomp/export.h"
#include "threads/machine_queries.h"

namespace queries = bosk::threads;

/// What `query`, an expression of `machine`, says; a code if there is no machine.
#define BOSK_ASK(query)                                                 \
  const bosk::topology::Machine* known = queries::machine_of_process(); \
  if (known == nullptr) return BOSK_ENOMEM;                             \
  const bosk::topology::Machine& machine = *known;                      \
  return query

BOSK_EXPORT int bosk_topo_levels() { BOSK_ASK(static_cast<int>(machine.n_levels)); }
BOSK_EXPORT const char* bosk_topo_level_name(int level) {
  const bosk::topology::Machine* machine = queries::machine_of_process();
  return machine == nullptr ? nullptr : queries::name_of_level(*machine, level);
}
static int topo_level(const char* name) { BOSK_ASK(queries::level_by_name(machine, name)); }
BOSK_EXPORT int bosk_topo_level(const char* name) {
  return queries::answer(topo_level(name), __func__, queries::of_level(name));
}
BOSK_EXPORT int bosk_topo_domains(int level) {
  BOSK_ASK(queries::domains_of_level(machine, level));
}
BOSK_EXPORT int bosk_topo_depth() { BOSK_ASK(machine.n_depths); }
BOSK_EXPORT int bosk_topo_pus() { BOSK_ASK(static_cast<int>(machine.n_pus)); }
BOSK_EXPORT int bosk_topo_domain_of(int level, int pu) {
  BOSK_ASK(queries::domain_of_pu(machine, level, pu));
}
BOSK_EXPORT int bosk_topo_pus_in(int level, int domain) {
  BOSK_ASK(queries::pus_in_domain(machine, level, domain));
}
BOSK_EXPORT int bosk_topo_first_pu(int level, int domain) {
  BOSK_ASK(queries::first_pu_of_domain(machine, level, domain));
}
BOSK_EXPORT int bosk_topo_os_number(int level, int domain) {
  BOSK_ASK(queries::os_number(machine, level, domain));
}
BOSK_EXPORT int bosk_topo_pu_of_cpu(int cpu) { BOSK_ASK(queries::pu_of_cpu(machine, cpu)); }
BOSK_EXPORT int bosk_topo_is_real() { BOSK_ASK(machine.this_system ? 1 : 0); }
BOSK_EXPORT int bosk_here() { BOSK_ASK(queries::pu_of_caller(machine)); }
BOSK_EXPORT int bosk_here_in(int level) {
  const int pu = bosk_here();
  if (pu < 0) return pu;
  BOSK_ASK(queries::domain_of_pu(machine, level, pu));
}
BOSK_EXPORT int bosk_topo_distance(int pu, int other_pu) {
  BOSK_ASK(queries::pu_distance(machine, pu, other_pu));
}
BOSK_EXPORT int bosk_topo_shared_level(int pu, int other_pu) {
  BOSK_ASK(queries::shared_level(machine, pu, other_pu));
}
BOSK_EXPORT int bosk_topo_shares(int level, int pu, int other_pu) {
  const int domain = bosk_topo_domain_of(level, pu);
  const int other = bosk_topo_domain_of(level, other_pu);
  return domain < 0 ? domain : other < 0 ? other : domain == other ? 1 : 0;
}
BOSK_EXPORT int bosk_topo_neighbours(int pu, int* pus, int count) {
  BOSK_ASK(queries::neighbours(machine, pu, pus, count));
}
BOSK_EXPORT int bosk_topo_nodes() { BOSK_ASK(static_cast<int>(machine.n_nodes)); }
BOSK_EXPORT int bosk_topo_node_of(int pu) { BOSK_ASK(queries::node_of(machine, pu)); }
BOSK_EXPORT int bosk_topo_node_os_number(int node) {
  BOSK_ASK(queries::node_os_number(machine, node));
}
BOSK_EXPORT int bosk_topo_node_distance(int from, int to) {
  BOSK_ASK(queries::node_distance(machine, from, to));
}
BOSK_EXPORT int64_t bosk_topo_node_bytes(int node) { BOSK_ASK(queries::node_bytes(machine, node)); }
