// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where in the machine something is queued: for idle workers, who look outside of their own path.
#pragma once

#include <stdint.h>

#include "base/atomics_policy.h"
#include "base/cpu.h"
#include "sched/work_signs_protocol.h"
#include "topology/machine.h"

namespace bosk::sched {

/// A tree of words, one per domain. Queueing and taking cost nothing while the bit of the queue is up
/// (it stays up when the queue runs empty); from any domain, something queued below it is found in as
/// many steps as there are levels, but for bits that are out of date, each of which is met once.
class WorkSigns {
 public:
  using Sign = WorkSign<base::StdAtomics>;
  /// A line each: they are written by workers far from each other.
  struct alignas(base::kCacheLine) Slot {
    Sign sign;
  };

  void set(const topology::Machine& machine, Slot* slots) {
    machine_ = &machine;
    slots_ = slots;
  }
  uint64_t bits(uint32_t domain) const { return slots_[domain].sign.bits(); }

  /// Something is queued on the domain's queue, whose lock is held. O(levels) at most.
  void raise_own(uint32_t domain) { raise(machine_->domain_array[domain], Sign::kOwnQueue); }
  /// Nothing is; the lock is held, too.
  void lower_own(uint32_t domain) { slots_[domain].sign.lower(Sign::kOwnQueue); }

  /// The bit of a child in its parent's word.
  static uint64_t bit_of(const topology::Domain& child) {
    return uint64_t{1} << child.rank / group(*child.parent);
  }
  /// How many children of `d` share a bit; the first of them is child number bit × group.
  static uint32_t group(const topology::Domain& d) {
    return (d.n_children + Sign::kChildBits - 1) / Sign::kChildBits;
  }

  /// The searcher has found nothing below child number `bit` (or the group of them) of `d`.
  void lower(const topology::Domain& d, uint32_t bit) {
    if (anything_below(d, bit)) return;
    slots_[d.id].sign.lower(uint64_t{1} << bit);
    if (anything_below(d, bit)) raise(d, uint64_t{1} << bit);
  }

 private:
  bool anything_below(const topology::Domain& d, uint32_t bit) const {
    const uint32_t size = group(d);
    uint64_t any = 0;
    for (uint32_t i = bit * size; i < (bit + 1) * size && i < d.n_children; ++i)
      any |= bits(d.first_child[i].id);
    return any != 0;
  }
  void raise(const topology::Domain& domain, uint64_t bit) {
    const topology::Domain* d = &domain;
    while (slots_[d->id].sign.raise(bit) && d->parent != nullptr) {
      bit = bit_of(*d);
      d = d->parent;
    }
  }

  const topology::Machine* machine_ = nullptr;
  Slot* slots_ = nullptr;
};

}  // namespace bosk::sched
