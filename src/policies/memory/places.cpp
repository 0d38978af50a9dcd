// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which domains entities are drawn to.
#include <algorithm>

#include "policies/memory/draw.h"

namespace bosk::policies::draw {

using topology::Domain;
using topology::Machine;

bool Places::set(const Machine& machine, const topology::Level* bottom) {
  const topology::Level& nodes = *machine.level(topology::Kind::kNode);
  if (!of_pu_.resize(machine.n_pus) || !of_node_.resize(machine.n_nodes)) return false;
  for (uint32_t pu = 0; pu < machine.n_pus; ++pu) {
    const Domain* d = &machine.domain_array[nodes.of_pu[pu]];
    if (bottom != nullptr && machine.domain_array[bottom->of_pu[pu]].depth < d->depth)
      d = &machine.domain_array[bottom->of_pu[pu]];
    if ((domains_.empty() || domains_.back() != d->id) && !domains_.push(d->id)) return false;
    of_pu_[pu] = domains_.size() - 1;
  }
  for (uint32_t node = 0; node < machine.n_nodes; ++node) {
    uint32_t nearest = 0;
    uint32_t distance = UINT32_MAX;
    for (uint32_t pu = 0; pu < machine.n_pus; ++pu) {
      const uint32_t there = machine.node_of_pu(pu);
      const uint32_t far = there == node ? 0 : machine.node_distance(there, node);
      if (far >= distance) continue;
      distance = far;
      nearest = of_pu_[pu];
    }
    of_node_[node] = nearest;
  }
  return true;
}

void Places::release() {
  domains_.release();
  of_pu_.release();
  of_node_.release();
}

void Places::below(const Domain& d, uint32_t* first, uint32_t* count) const {
  *first = of_pu_[d.first_pu];
  *count = of_pu_[d.last_pu] - *first + 1;
}

}  // namespace bosk::policies::draw
