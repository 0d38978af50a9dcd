// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/ended_members.h"

#include <bit>

#include "base/message.h"
#include "base/pages.h"
#include "sched/configuration.h"
#include "sched/ghost_identity.h"
#include "sched/scheduler.h"

namespace bosk::sched {
namespace {

constexpr size_t kPageBytes = 16 * 1024;
constexpr uint32_t kFirstSweep = 64;

/// The region may be over, and the object another's. Relaxed: who helps looks again, with a unit of the
/// team's count of helpers.
bool is_over(const EndedMembers& ended) {
  return ended.bubble == nullptr || ended.mask == 0 || ended.bubble->life_seen() != ended.life;
}

EndedMembers* new_record(Worker* w) {
  if (w->free_ended == nullptr) {
    // Straight from the kernel: preemption is off, and malloc's locks may be held by a preempted thread.
    auto* records = static_cast<EndedMembers*>(base::map_pages(kPageBytes));
    if (records == nullptr) base::gomp_fatal("Out of memory allocating a team");
    records[0].next = w->ended_pages;
    w->ended_pages = records;
    for (size_t i = 1; i < kPageBytes / sizeof(EndedMembers); ++i) {
      records[i].next = w->free_ended;
      w->free_ended = &records[i];
    }
  }
  EndedMembers* record = w->free_ended;
  w->free_ended = record->next;
  return record;
}

void drop_record(Worker* w, EndedMembers** at) {
  EndedMembers* record = *at;
  *at = record->next;
  record->bubble = nullptr;
  record->next = w->free_ended;
  w->free_ended = record;
  --w->more_ended_count;
}

void sweep(Worker* w) {
  for (EndedMembers** at = &w->ended_ghosts.next; *at != nullptr;)
    if (is_over(**at))
      drop_record(w, at);
    else
      at = &(*at)->next;
  w->sweep_ended_at = 2 * w->more_ended_count > kFirstSweep ? 2 * w->more_ended_count : kFirstSweep;
}

/// Behind the newest. O(1), but for sweeps, which come after as many records as they look at.
void keep(Worker* w, const EndedMembers& ended) {
  constexpr int kLooks = 4;
  EndedMembers* at = w->ended_ghosts.next;
  for (int i = 0; i < kLooks && at != nullptr; ++i, at = at->next) {
    if (at->bubble != ended.bubble || at->life != ended.life || at->base != ended.base) continue;
    at->mask |= ended.mask;
    return;
  }
  if (w->more_ended_count >= w->sweep_ended_at) sweep(w);
  EndedMembers* record = new_record(w);
  *record = ended;
  record->next = w->ended_ghosts.next;
  w->ended_ghosts.next = record;
  ++w->more_ended_count;
}

}  // namespace

void note_members(Worker* w, Bubble* bubble, uint64_t life, uint32_t base, uint64_t mask) {
  EndedMembers& newest = w->ended_ghosts;
  if (newest.bubble == bubble && newest.life == life && newest.base == base) {
    newest.mask |= mask;
    return;
  }
  if (!is_over(newest)) keep(w, newest);
  newest = {bubble, life, mask, base, newest.next};
}

void note_full_window(Thread* me, Serving* serving) {
  Worker* w = enter(me);
  if (serving->first != nullptr) hold_identities(serving->bubble, serving->first, serving->last);
  serving->first = serving->last = nullptr;
  note_members(w, serving->bubble, serving->bubble->life(), serving->served.base,
               not_noted(*serving));
  serving->served.mask = serving->noted = 0;
  leave(me);
}

void note_serving(Worker* w, Thread* me) {
  for (Serving* serving = me->serving; serving != nullptr; serving = serving->outer) {
    Bubble* bubble = serving->bubble;
    if (bubble->queued_work.load(std::memory_order_relaxed) == 0) continue;
    const uint64_t life = bubble->life();
    if (serving->first != nullptr) hold_identities(bubble, serving->first, serving->last);
    serving->first = serving->last = nullptr;
    const uint64_t rest = not_noted(*serving);
    if (rest != 0) note_members(w, bubble, life, serving->served.base, rest);
    serving->noted |= rest;
    WaitsBelow* below = serving->below;
    if (below == nullptr || below->lent) continue;
    below->lent = true;
    note_members(w, bubble, life, below->index & ~63u, uint64_t{1} << (below->index & 63));
  }
}

bool take_back_member(Worker* w, Bubble* bubble, uint32_t index) {
  const uint64_t life = bubble->life();
  const uint64_t bit = uint64_t{1} << (index & 63);
  const auto taken = [&](EndedMembers& ended) {
    if (ended.bubble != bubble || ended.life != life || ended.base != (index & ~63u) ||
        (ended.mask & bit) == 0)
      return false;
    ended.mask &= ~bit;
    return true;
  };
  if (taken(w->ended_ghosts)) return true;
  for (EndedMembers* at = w->ended_ghosts.next; at != nullptr; at = at->next)
    if (taken(*at)) return true;
  return false;
}

EndedMembers* ended_that_may_help(Worker* w) {
  if (may_help_again(w->ended_ghosts)) return &w->ended_ghosts;
  for (EndedMembers* at = w->ended_ghosts.next; at != nullptr; at = at->next)
    if (may_help_again(*at)) return at;
  return nullptr;
}

void help_team(Thread* me, EndedMembers* ended) {
  Bubble* bubble = ended->bubble;
  const uint64_t life = ended->life;
  const uint32_t base = ended->base;
  const uint64_t bit = ended->mask & -ended->mask;
  // Two contexts must not run as one member: while this one does, nobody else may.
  ended->mask &= ~bit;
  arm_timer(me->worker);
  if (configuration().help_hook(me, bubble, life,
                                base + static_cast<uint32_t>(std::countr_zero(bit)))) {
    note_members(me->worker, bubble, life, base, bit);
    return;
  }
  // What others have noted of that region, on the worker that this is now, they find out themselves.
  Worker* w = me->worker;
  if (w->ended_ghosts.bubble == bubble && w->ended_ghosts.life == life)
    w->ended_ghosts.bubble = nullptr;
  for (EndedMembers** at = &w->ended_ghosts.next; *at != nullptr;)
    if ((*at)->bubble == bubble && (*at)->life == life)
      drop_record(w, at);
    else
      at = &(*at)->next;
}

void help_team_as_native(Thread* me) {
  EndedMembers& ended = me->pinned->ended_native;
  const uint64_t mask = ended.mask;
  ended.mask = 0;
  // As in omp's note_team_work(): not a tick for each of a thousand.
  if (me->worker->index < me->worker->pool->worker_limit) arm_timer(me->worker);
  // It alone writes the record, but for pauses, which find no region.
  if (configuration().help_hook(me, ended.bubble, ended.life, ended.base))
    ended.mask = mask;
  else
    ended.bubble = nullptr;
}

void forget_ended_members(Worker* w) {
  w->ended_native = {};
  while (w->ended_ghosts.next != nullptr) drop_record(w, &w->ended_ghosts.next);
  w->ended_ghosts = {};
}

void free_ended_members(Worker* w) {
  while (EndedMembers* page = w->ended_pages) {
    w->ended_pages = page->next;
    base::unmap_pages(page, kPageBytes);
  }
  w->ended_ghosts.next = w->free_ended = nullptr;
  w->more_ended_count = 0;
}

}  // namespace bosk::sched
