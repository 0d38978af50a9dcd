// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bubbles that a policy lets wait: beside the queues of the search, until a PU has nothing to do.
//
// Each domain has a room, a run queue that is on no PU's path. Its lock comes after those of all
// domains' queues and before those of bubbles. A bubble in a room is queued like any other: it can be
// removed, and a bubble around it that closes takes it back. Who asks for it again has taken it off,
// like a search that came upon it.
//
// A wake-up cannot be lost: bubbles wait for PUs that are busy, and whoever ends or gives back what it
// runs there comes to idle() before it sleeps.
#include <new>

#include "base/cpu.h"
#include "base/mapped_array.h"
#include "policies/engine.h"

namespace bosk::policies {

using sched::NestedBubble;
using sched::RunQueue;

bool PolicyEngine::make_rooms() {
  void* memory = base::map_pages(size_t{machine().n_domains} * sizeof(RunQueue));
  if (memory == nullptr) return false;
  rooms_ = static_cast<RunQueue*>(memory);
  clear_rooms();
  return true;
}

void PolicyEngine::clear_rooms() {
  const uint32_t n = machine().n_domains;
  for (uint32_t d = 0; d < n; ++d) {
    auto* room = new (rooms_ + d) RunQueue;
    room->domain = d;
    room->rank = uint64_t{n} + d;
  }
}

void PolicyEngine::free_rooms() {
  if (rooms_ != nullptr) base::unmap_pages(rooms_, size_t{machine().n_domains} * sizeof(RunQueue));
  rooms_ = nullptr;
}

/// One load per level where nothing waits.
bool PolicyEngine::reconsider(uint32_t pu) {
  for (const topology::Domain* d = &machine().pu(pu); d != nullptr; d = d->parent)
    if (!rooms_[d->id].empty_hint() && reconsider_room(rooms_[d->id], pu)) return true;
  return false;
}

/// What a policy lets wait is for the PUs of its domain; a gang by its relation, which a policy has dealt there to
/// balance loads, waits for PUs. So an idle one that finds nothing asks for those that wait in larger and larger domains around
/// it, its own included, whether they may start there: the others whose PUs would do with this one may be asleep, and have
/// asked before. Some two loads for each domain, once a gang has had to wait.
bool PolicyEngine::reconsider_afar(uint32_t pu) {
  if (BOSK_LIKELY(!gangs_wait_.load(std::memory_order_relaxed))) return false;
  for (const topology::Domain* d = machine().pu(pu).parent; d != nullptr; d = d->parent) {
    // Domains are numbered level by level, so those below are not one range.
    for (uint32_t i = d->id + 1; i < machine().n_domains; ++i) {
      const topology::Domain& other = machine().domain_array[i];
      if (rooms_[i].empty_hint() || other.depth <= d->depth || !d->contains_pu(other.first_pu))
        continue;
      if (reconsider_room(rooms_[i], pu, d)) return true;
    }
  }
  return false;
}

/// Asks for each that waits, in order, until one may go: where it waits, or for gangs on `around`. O(bubbles that
/// wait), and what it costs to ask.
bool PolicyEngine::reconsider_room(RunQueue& room, uint32_t pu, const topology::Domain* around) {
  NestedBubble* still_waiting =
      nullptr;  // last one first, linked by `next`, which is ours off a queue
  bool went = false;
  uint32_t left;
  {
    base::SpinGuard guard(room.lock);
    left = room.length;
  }
  for (; !went && left != 0; --left) {
    NestedBubble* bubble = nullptr;
    {
      base::SpinGuard guard(room.lock);
      bubble = static_cast<NestedBubble*>(room.first);
      if (bubble != nullptr) room.remove_locked(bubble);
    }
    if (bubble == nullptr) break;
    if (!sched::take_in_hand(*bubble)) continue;
    uint32_t domain = around == nullptr ? room.domain : around->id;
    FoundBubble found;
    {
      base::SpinGuard guard(bubble->lock);
      found = describe(*bubble, domain, pu);
    }
    found.waited = true;
    went = (around == nullptr || may_start_on(*bubble, *around)) && decide(*bubble, found, &domain);
    if (went) break;
    sched::put_down(*bubble);
    bubble->next = still_waiting;
    still_waiting = bubble;
  }
  while (still_waiting != nullptr) {
    NestedBubble* bubble = still_waiting;
    still_waiting = static_cast<NestedBubble*>(bubble->next);
    bubble->next = nullptr;
    sched::requeue(*bubble, room, true);
  }
  return went;
}

}  // namespace bosk::policies
