// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bubbles that need not be dealt out: those that have nowhere to go, and those that go down whole beside the
// worker that came upon them.
#include "policies/spread/distribute.h"
#include "policies/spread/shares.h"

namespace bosk::policies::spread {

using topology::Domain;

bool is_bottom(const Parameters& p, const Domain& d) {
  return d.is_pu() || (p.bottom != nullptr && at_or_below(*p.machine, *p.bottom, d));
}

bool has_way_down(const Parameters& p, const FoundBubble& bubble) {
  return !is_bottom(p, p.machine->domain_array[bubble.domain]) && bubble.members != 0 &&
         bubble.members + bubble.ghosts != 1;
}

const Domain& way_down(const Parameters& p, const FoundBubble& bubble) {
  const std::atomic<uint64_t>* booked = bubble.booked;
  const Domain* d = &p.machine->domain_array[bubble.domain];
  const uint64_t load = bubble.load_inside;
  if (load == UINT64_MAX) return *d;
  while (!is_bottom(p, *d)) {
    const Domain& child = child_with_pu(*d, bubble.pu);
    const Wide share = (Wide{booked_on(booked, *d)} + load) * child.n_pus();
    const bool stays_whole = Wide{load} * d->n_pus() * 100 <= share * p.explode_percent;
    if (!stays_whole || !has_room(booked, *d, child, load)) break;
    d = &child;
  }
  return *d;
}

}  // namespace bosk::policies::spread
