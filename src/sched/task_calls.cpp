// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calling sleeping workers to the queued tasks of a team, as many as there is work
// (task_call_protocol.h).
#include "sched/task_calls.h"

#include <bit>

#include "sched/scheduler.h"

namespace bosk::sched {
namespace {

/// A bit of 64 for each team: a caller passes over most sleepers that have to do with others only.
uint64_t sign_of(const Bubble* team) {
  if (team == nullptr) return 0;
  return uint64_t{1} << ((reinterpret_cast<uint64_t>(team) >> 6) * 0x9e3779b97f4a7c15u >> 58);
}

uint64_t signs_of(const Worker* w, const Bubble* awaited) {
  uint64_t signs = sign_of(awaited);
  if (w->ended_native.mask != 0) signs |= sign_of(w->ended_native.bubble);
  for (const EndedMembers* at = &w->ended_ghosts; at != nullptr; at = at->next)
    if (at->mask != 0) signs |= sign_of(at->bubble);
  for (const BarrierGroup* group = w->groups; group != nullptr; group = group->next)
    if (group->first != nullptr) signs |= sign_of(group->bubble);
  return signs;
}

/// The same without doubt. A record of members that ended may be of an older region: who follows it finds
/// out, and drops it.
bool may_serve(const Worker* w, const Bubble* awaited, const Bubble* team) {
  if (awaited == team) return true;
  if (w->ended_native.mask != 0 && w->ended_native.bubble == team) return true;
  for (const EndedMembers* at = &w->ended_ghosts; at != nullptr; at = at->next)
    if (at->mask != 0 && at->bubble == team) return true;
  for (const BarrierGroup* group = w->groups; group != nullptr; group = group->next)
    if (group->first != nullptr && group->bubble == team) return true;
  return false;
}

/// Calls action(worker) for those who sleep and may have to do with the team, from number `from` on, until
/// it returns true.
template <class Action>
void for_sleepers(Pool* pool, const Bubble* team, uint32_t from, Action action) {
  base::StdAtomics::light_barrier();
  if (pool->parked.load(std::memory_order_relaxed) == 0) return;
  const uint64_t sign = sign_of(team);
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  for (uint32_t base = from & ~63u; base < workers; base += 64) {
    uint64_t bits = pool->task_sleepers[base / 64].bits();
    if (base < from) bits &= ~uint64_t{0} << (from - base);
    for (; bits != 0; bits &= bits - 1) {
      Worker* w = pool->worker(base + static_cast<uint32_t>(std::countr_zero(bits)));
      if (w == nullptr || (w->call_signs.load(std::memory_order_relaxed) & sign) == 0) continue;
      if (action(w)) return;
    }
  }
}

SleeperList<base::StdAtomics>& list_of(const Worker* w) {
  return w->pool->task_sleepers[w->index / 64];
}

void call(Pool* pool, Bubble* team, uint32_t from, uint32_t count) {
  for_sleepers(pool, team, from, [&](Worker* w) {
    if (!list_of(w).take(w->index % 64) || !w->call.call(team)) return false;
    wake_worker(w);
    return --count == 0;
  });
}

}  // namespace

void call_for_tasks(Pool* pool, Bubble* team, uint32_t count) { call(pool, team, 0, count); }

bool somebody_sleeps_for(Pool* pool, const Bubble* team) {
  bool any = false;
  for_sleepers(pool, team, 0, [&](const Worker*) { return any = true; });
  return any;
}

void hand_call_on(Worker* w) {
  Bubble* team = w->called_for;
  w->called_for = nullptr;
  // relaxed: the call has brought what the caller saw.
  if (team->queued_work.load(std::memory_order_relaxed) != 0) call(w->pool, team, w->index + 1, 1);
}

void begin_sleep(Worker* w, const Bubble* awaited) {
  if (BOSK_UNLIKELY(w->called_for != nullptr)) {
    // Whoever may help looks at the flag once more after this.
    if (!may_serve(w, awaited, w->called_for))
      hand_call_on(w);
    else if (w->called_for->queued_work.load(std::memory_order_relaxed) == 0)
      w->called_for = nullptr;
  }
  const uint64_t signs = signs_of(w, awaited);
  if (signs == 0) return;
  w->call_signs.store(signs, std::memory_order_relaxed);
  w->call.open();
  list_of(w).add(w->index % 64);
}

void end_sleep(Worker* w) {
  if (w->call_signs.load(std::memory_order_relaxed) == 0) return;
  Bubble* team = w->call.close();
  list_of(w).remove(w->index % 64);
  w->call_signs.store(0, std::memory_order_relaxed);
  if (team == nullptr) return;
  if (w->called_for != nullptr && w->called_for != team) hand_call_on(w);
  w->called_for = team;
}

void answer_call_by_native(Worker* w, const Bubble* awaited) {
  // Who waits in the team looks for its tasks while the flag is set.
  if (w->called_for == awaited) {
    w->called_for = nullptr;
    return;
  }
  // It helps, or finds that the region was over; whichever, the call is looked at before it sleeps.
  if (awaited == nullptr && w->called_for == w->ended_native.bubble &&
      w->job.sequence.load(std::memory_order_relaxed) == w->job_seen)
    return;
  hand_call_on(w);
}

Thread* answer_call(Worker* w, Thread* next) {
  if (next == nullptr && !has_ghosts(w)) {
    if (Thread* member = take_waiting_member_of(w, w->called_for)) {
      w->called_for = nullptr;
      return member;
    }
  }
  hand_call_on(w);
  return next;
}

}  // namespace bosk::sched
