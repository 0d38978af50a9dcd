// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Barrier of a bubble whose members are multiplexed over workers.
//
// Each worker keeps the members that wait on it in a group of its own; it adds their arrivals to the
// bubble's count in one go when no other member of the team can run next on this worker. Whoever
// brings the count to the team's size resets it and advances the epoch; the other workers see the
// epoch and put their own groups back on their own queues, so threads stay where their data are.
// Cost: one queue operation and one switch a member, one shared read-modify-write a worker.
#include "base/message.h"
#include "base/pages.h"
#include "sched/barrier_group.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"
#include "sched/task_calls.h"

namespace bosk::sched {
namespace {

bool is_open(const BarrierGroup* group) {
  return may_go_on(group->bubble, group->epoch, group->cancellable);
}

constexpr size_t kGroupBytes = 64 * 1024;

BarrierGroup* group_of(Worker* w, Bubble* bubble, uint32_t epoch) {
  for (BarrierGroup* group = w->groups; group != nullptr; group = group->next)
    if (group->bubble == bubble && group->epoch == epoch) return group;
  return nullptr;
}

/// Straight from the kernel: preemption is off, and malloc's locks may be held by a preempted thread.
void more_groups(Worker* w) {
  auto* groups = static_cast<BarrierGroup*>(base::map_pages(kGroupBytes));
  if (groups == nullptr) base::gomp_fatal("Out of memory allocating a barrier");
  groups[0].next = w->group_pages;
  w->group_pages = groups;
  for (size_t i = 1; i < kGroupBytes / sizeof(BarrierGroup); ++i) {
    groups[i].next = w->free_groups;
    w->free_groups = &groups[i];
  }
}

BarrierGroup* make_group(Worker* w, Bubble* bubble, uint32_t epoch, bool cancellable) {
  if (w->free_groups == nullptr) more_groups(w);
  BarrierGroup* group = w->free_groups;
  w->free_groups = group->next;
  group->bubble = bubble;
  group->epoch = epoch;
  group->cancellable = cancellable;
  group->unreported = 0;
  group->first = nullptr;
  group->last = &group->first;
  group->next = w->groups;
  w->groups = group;
  return group;
}

void drop_group(Worker* w, BarrierGroup* group) {
  BarrierGroup** at = &w->groups;
  while (*at != group) at = &(*at)->next;
  *at = group->next;
  if (group->unreported != 0) --w->unreported_groups;
  group->unreported = 0;
  group->next = w->free_groups;
  w->free_groups = group;
}

/// Everybody of the group onto the worker's queue, in the order of arrival, under one lock; but the
/// opener, if it came first, last: in a region's last barrier it would only go on to wait in the join.
void release_group(Worker* w, BarrierGroup* group) {
  // Without members here the bubble may be another team's by now.
  if (group->first != nullptr && group->first == group->bubble->opener) {
    Thread* opener = group->first;
    group->first = opener->link;
    if (group->first == nullptr) group->last = &group->first;
    append(group, opener);
  }
  if (group->first != nullptr) {
    base::SpinGuard guard(w->ready.lock);
    for (Thread* thread = group->first; thread != nullptr;) {
      Thread* next = thread->link;
      if (BOSK_UNLIKELY(thread == w->leaving))
        w->leaving_is_free = true;
      else
        w->ready.enqueue_locked(thread);
      thread = next;
    }
  }
  drop_group(w, group);
}

/// Adds the group's arrivals to the count. True: it was the last, the barrier is open.
bool report(Worker* w, BarrierGroup* group) {
  Bubble* bubble = group->bubble;
  const uint32_t arrivals = group->unreported;
  group->unreported = 0;
  --w->unreported_groups;
  if (!bubble->meeting.arrive(arrivals, bubble->size, group->epoch)) return false;
  wake_all_parked(w->pool);
  return true;
}

/// The member of a group has left its stack.
void left(void* argument, Worker* w) {
  w->leaving = nullptr;
  if (BOSK_LIKELY(!w->leaving_is_free)) return;
  w->leaving_is_free = false;
  w->ready.enqueue(static_cast<Thread*>(argument));
}

}  // namespace

void free_groups(Worker* w) {
  while (BarrierGroup* page = w->group_pages) {
    w->group_pages = page->next;
    base::unmap_pages(page, kGroupBytes);
  }
  w->groups = w->free_groups = nullptr;
  w->unreported_groups = 0;
}

void report_arrivals(Worker* w) {
  for (BarrierGroup* group = w->groups; group != nullptr && w->unreported_groups != 0;
       group = group->next)
    if (group->unreported != 0) report(w, group);
}

bool a_group_is_open(Worker* w) {
  for (BarrierGroup* group = w->groups; group != nullptr; group = group->next) {
    if (is_open(group)) return true;
    if (group->first != nullptr && group->bubble->queued_work.load(std::memory_order_relaxed) != 0)
      return true;
  }
  return false;
}

bool poll_groups(Worker* w) {
  bool any = false;
  for (BarrierGroup* group = w->groups; group != nullptr;) {
    BarrierGroup* next = group->next;
    if (is_open(group)) {
      any |= group->first != nullptr;
      release_group(w, group);
    }
    group = next;
  }
  return any;
}

static Thread* take_first(BarrierGroup* group) {
  Thread* thread = group->first;
  group->first = thread->link;
  if (group->first == nullptr) group->last = &group->first;
  return thread;
}

Thread* take_waiting_member(Worker* w) {
  for (BarrierGroup* group = w->groups; group != nullptr; group = group->next)
    if (group->first != nullptr && group->bubble->queued_work.load(std::memory_order_relaxed) != 0)
      return take_first(group);
  return nullptr;
}

Thread* take_waiting_member_of(Worker* w, const Bubble* bubble) {
  for (BarrierGroup* group = w->groups; group != nullptr; group = group->next)
    if (group->first != nullptr && group->bubble == bubble) return take_first(group);
  return nullptr;
}

bool bubble_barrier(Thread* me, Bubble* bubble, uint32_t epoch, bool again, bool cancellable) {
  Worker* w = me->worker;
  BarrierGroup* group = group_of(w, bubble, epoch);
  if (group == nullptr) group = make_group(w, bubble, epoch, cancellable);
  if (again && is_open(group)) {
    // It opened while this member ran tasks.
    release_group(w, group);
    return true;
  }
  if (!again && group->unreported++ == 0) ++w->unreported_groups;
  const bool work_waits = bubble->queued_work.load(std::memory_order_relaxed) != 0;
  if (BOSK_LIKELY(!work_waits)) {
    if (Thread* next = team_mate_to_run(w, bubble)) {
      switch_in_group(me, group, next);
      return may_go_on(bubble, epoch, cancellable);
    }
    if (group->unreported != 0 && report(w, group)) {
      // The last arrival goes on itself and puts the waiters back in one go.
      release_group(w, group);
      return true;
    }
    for (int spins = 0; spins < 64; ++spins) {
      if (is_open(group)) {
        release_group(w, group);
        return true;
      }
      if (!w->ready.empty_hint() || bubble->ghosts.left() > 0 || !w->share.empty()) break;
      if (bubble->queued_work.load(std::memory_order_relaxed) != 0) break;
      base::cpu_pause();
    }
  }
  if (bubble->queued_work.load(std::memory_order_relaxed) != 0) {
    if (group->unreported != 0 && report(w, group)) {
      release_group(w, group);
      return true;
    }
    if (group->first == nullptr) drop_group(w, group);
    return false;
  }
  append(group, me);
  // While block() waits for a carrier the group may open, and thieves look at what that releases.
  w->leaving = me;
  block(me, {left, me});
  return may_go_on(bubble, epoch, cancellable);
}

}  // namespace bosk::sched
