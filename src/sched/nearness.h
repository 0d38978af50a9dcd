// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where workers sit, and so whose ghosts and threads they may take, and when.
//
// All of it is a preference, and read without order unless it says otherwise: a bubble that one looks at may be recycled meanwhile. What
// is never refused: the ghosts of bubbles that were opened on the worker, and threads that are ready there.
#pragma once

#include <stdint.h>

#include "base/cpu.h"
#include "sched/worker.h"

namespace bosk::sched {

/// The PU that a worker of the pool plays.
inline uint32_t pu_of(const Pool* pool, const topology::Machine& machine, uint32_t worker) {
  // acquire: the table is complete when it is seen.
  const Seats* seats = pool->seats.load(std::memory_order_acquire);
  return seats == nullptr || worker >= seats->count ? pu_of_worker(machine, worker)
                                                    : seats->pu_of_worker()[worker];
}

/// For WorkerOrder: who sits on which PU; null: worker i on PU i.
inline const uint32_t* seated_workers(const Pool* pool) {
  const Seats* seats = pool->seats.load(std::memory_order_acquire);
  return seats == nullptr ? nullptr : seats->worker_of_pu();
}

/// The pool's first `count` workers, those nearest to `w` first, itself included; where distance is
/// unknown by number, from `start` on.
inline WorkerOrder order_from(const Worker* w, uint32_t start, uint32_t count) {
  const topology::Machine* machine = w->pool->machine.load(std::memory_order_acquire);
  return machine == nullptr ? WorkerOrder(start, count)
                            : WorkerOrder(*machine, machine->pu(pu_of(w->pool, *machine, w->index)),
                                          count, seated_workers(w->pool));
}

/// The PUs of the worker's node; where there are none, all.
inline uint64_t node_of_worker(const Worker* w) {
  const topology::Machine* machine = w->pool->machine.load(std::memory_order_acquire);
  const topology::Level* nodes =
      machine != nullptr ? machine->level(topology::Kind::kNode) : nullptr;
  if (nodes == nullptr) return kReachAll;
  const topology::Domain& node =
      machine->domain_array[nodes->of_pu[pu_of(w->pool, *machine, w->index)]];
  return reach_of(node.first_pu, node.last_pu);
}
/// How many they are.
inline uint32_t pus_of_node(const Worker* w) {
  const uint64_t node = node_of_worker(w);
  const uint64_t pus = (node >> 32) - (node & UINT32_MAX) + 1;
  return pus < UINT32_MAX ? static_cast<uint32_t>(pus) : UINT32_MAX;
}

// ---- whose

/// May the worker help with `bubble` now?
inline bool may_help(const Worker* w, const Bubble* bubble) {
  // acquire: of another worker's root, which may be new, the depth is read next.
  const Bubble* root = w->help_root.load(std::memory_order_acquire);
  return root == nullptr || bubble == nullptr || descends_from(bubble, root);
}

/// Is the worker within the reach that the policy gave to the bubble?
inline bool in_reach(const Worker* w, const Bubble* bubble) {
  // acquire: the machine is complete when it is seen.
  const topology::Machine* machine = w->pool->machine.load(std::memory_order_acquire);
  return machine == nullptr || bubble == nullptr ||
         reaches(bubble->reach.load(std::memory_order_relaxed), pu_of(w->pool, *machine, w->index));
}

/// The bubble whose reach holds for members of `bubble`, which is open: a region of one thread has none.
inline const Bubble* with_reach(const Bubble* bubble) {
  while (bubble != nullptr && bubble->size == 1)
    bubble = bubble->parent.load(std::memory_order_relaxed);
  return bubble;
}

/// May the worker take something of `bubble` away from another one now?
inline bool may_take(const Worker* w, const Bubble* bubble) {
  return may_help(w, bubble) && in_reach(w, bubble);
}

/// Is the worker's PU on a node where the bubble's ghosts are at home?
inline bool is_at_home(const Worker* w, const Bubble* bubble) {
  const uint64_t near = bubble->near.load(std::memory_order_relaxed);
  if (near == kReachAll) return true;
  // acquire: the machine is complete when it is seen.
  const topology::Machine* machine = w->pool->machine.load(std::memory_order_acquire);
  return machine == nullptr || reaches(near, pu_of(w->pool, *machine, w->index));
}

/// Is it on the node that has adopted them?
inline bool is_adopter(const Worker* w, const Bubble* bubble) {
  const topology::Machine* machine = w->pool->machine.load(std::memory_order_acquire);
  return machine != nullptr && bubble->adoption.by(pu_of(w->pool, *machine, w->index));
}

/// Or on one that has adopted them? Others come later (far_wait.h).
inline bool is_near(const Worker* w, const Bubble* bubble) {
  return is_at_home(w, bubble) || is_adopter(w, bubble);
}

// ---- when

/// Ghosts that are at home on other nodes: those who are nearer come first (far_wait.h).
enum class Far : uint8_t {
  kIfItIsTime,  ///< if the worker has waited for long enough
  kEver,        ///< also if it has to wait still
};
inline bool may_go_far(const Worker* w) {
  const uint64_t now = base::cycles();
  return now >= w->far_wait.at() && now >= w->stays_until.load(std::memory_order_relaxed);
}
/// The same for a part of a team the rest of which runs on another node, or has been adopted there.
inline bool may_break_up(const Worker* w) {
  return may_go_far(w) && base::cycles() >= w->far_wait.at_for_parts();
}

/// Are the ghosts of a bubble that is at home on the worker's node for another one, which has adopted them? Not those of members that poll for
/// each other: they call whom they need.
inline bool is_for_adopter(const Worker* w, const Bubble* bubble) {
  return BOSK_UNLIKELY(bubble->adoption.is_known()) &&
         bubble->together.load(std::memory_order_relaxed) == Together::kNo &&
         !is_adopter(w, bubble);
}
/// Then who has opened it leaves them to that one for a while.
inline bool is_left_to_adopter(const Worker* w, const Bubble* bubble) {
  return is_for_adopter(w, bubble) && !may_break_up(w);
}

}  // namespace bosk::sched
