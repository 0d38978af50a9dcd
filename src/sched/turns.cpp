// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who comes next when a thread is to let others run that could go on itself.
#include "sched/turns.h"

#include <signal.h>

#include "sched/scheduler.h"
#include "sched/search.h"

namespace bosk::sched {

Thread* fair_share(Worker* w) { return w->ready.empty_hint() ? steal_ready_thread(w) : nullptr; }

/// Explicit threads that are no less urgent than the one that runs wait for this worker.
static bool entities_wait(Worker* w) {
  const Thread* current = w->current;
  return has_entities(w, current->is_entity() ? just_below(current->entity->priority) : kNoEntity);
}

/// Members that have not begun, or have ended and may take up work that is queued.
static bool has_unstarted(Worker* w) { return has_ghosts(w) || ended_that_may_help(w) != nullptr; }

bool leaves_ghosts(Worker* w) {
  constexpr uint32_t kEvery = 8;
  const Bubble* bubble = newest_open_bubble(w);
  return bubble != nullptr && w->share.empty() && is_for_adopter(w, bubble) &&
         ++w->ghosts_left_alone % kEvery != 0;
}

/// Another worker has sent word of some that have not begun, perhaps.
static bool has_mail(const Worker* w) { return w->mail.load(std::memory_order_relaxed) != nullptr; }

/// But members that have not begun.
static bool something_but_ghosts(Worker* w) {
  return !w->ready.empty_hint() || ended_that_may_help(w) != nullptr ||
         (w->groups != nullptr && a_group_is_open(w)) || w->native_condition.holds(w->native) ||
         has_mail(w) || entities_wait(w);
}

bool something_else(Worker* w) { return has_ghosts(w) || something_but_ghosts(w); }

bool leaves_all_to_adopter(Worker* w) { return !something_but_ghosts(w) && leaves_ghosts(w); }

Thread* next_in_turn(Worker* w) {
  if (w->native_condition.holds(w->native)) {
    w->native_condition.clear();
    return w->native;
  }
  // An explicit thread that is more urgent goes first; those as urgent take turns with all else.
  if (entities_wait(w)) {
    const Thread* me = w->current;
    const int32_t mine = me->is_entity() ? me->entity->priority : kDefaultPriority;
    const bool more_urgent = me->is_entity() && has_entities(w, mine);
    if (more_urgent || (w->tick_parity & 2) != 0 || (w->ready.empty_hint() && !has_unstarted(w)))
      if (Thread* entity = next_entity(w, me->is_entity() ? just_below(mine) : kNoEntity)) {
        w->tick_parity += more_urgent ? 0 : 2;
        return entity;
      }
    w->tick_parity += 2;
  }
  // Mail is read by carriers, if nobody is ready or ghosts come first.
  const bool ghosts_first =
      (++w->tick_parity & 1) != 0 && (has_unstarted(w) || has_mail(w)) && !leaves_ghosts(w);
  if (!ghosts_first)
    if (Thread* ready = pop_ready(w)) return ready;
  Thread* carrier = take_carrier(w);
  if (carrier != nullptr) {
    w->ghosts_first = ghosts_first;
    return carrier;
  }
  request_carriers(2);
  Thread* ready = pop_ready(w);
  return ready != nullptr ? ready : started_entity(w);
}

void await_turn(Thread* thread, Worker* w) {
  if (BOSK_UNLIKELY(thread->is_entity()) && thread->pinned == nullptr) {
    entity_ready(thread, w, false);
    return;
  }
  Worker* where = thread->pinned != nullptr ? thread->pinned : worker_with_team(w, thread);
  where->ready.enqueue(thread);
  if (where != w && where != thread->pinned) {
    wake_worker(where);
    note_ready(where);
    return;
  }
  offer(w, kLookAround);
}

static void requeue_who_gave_way(void* thread, Worker* w) {
  await_turn(static_cast<Thread*>(thread), w);
}

bool on_alternate_stack() {
  struct {
    void* low;
    int flags;
    size_t size;
  } stack{};
  base::raw_syscall(SYS_sigaltstack, 0, base::address_of(&stack));
  return (stack.flags & SS_ONSTACK) != 0;
}

/// Of the whole pool; what this worker has itself comes first. Of what others have, those that nobody has begun: they have something
/// to do, which of those that gave way nobody knows.
static Thread* next_of_pool(Worker* w) {
  // Where all wait in turn nobody is ever idle: those who have something to do would stay where they were begun, and those that
  // another worker has opened and does not come to would never begin.
  constexpr uint32_t kEvery = 8;
  constexpr uint32_t kTurnsBetweenLooks = 64;
  ++w->turns_of_program;
  if (w->turns_of_program % kTurnsBetweenLooks == 0) part_from_busy_neighbours(w);
  if (w->turns_of_program % kEvery == 0)
    if (Thread* share = steal_from_longer_queue(w)) return share;
  // It looks at all workers: so seldom that a turn's part of it does not depend on how many there are.
  const uint32_t workers = w->pool->worker_count.load(std::memory_order_relaxed);
  const bool looks_for_ghosts = w->turns_of_program % (workers > kEvery ? workers : kEvery) == 0;
  const bool has_own = something_else(w);
  bool is_far;
  if ((!has_own || looks_for_ghosts) && find_bubble(w, Far::kIfItIsTime, &is_far) != nullptr) {
    if (Thread* carrier = take_carrier(w)) {
      w->ghosts_first = true;
      return carrier;
    }
    request_carriers(2);
  }
  Thread* next = has_own ? next_in_turn(w) : nullptr;
  return next != nullptr ? next : fair_share(w);
}

static bool give_turn(Thread* me, bool by_program) {
  Worker* w = enter(me);
  if (BOSK_UNLIKELY(me->serving != nullptr)) note_serving(w, me);
  if (w->unreported_groups != 0) report_arrivals(w);
  if (w->groups != nullptr) poll_groups(w);
  Thread* next = on_alternate_stack() ? nullptr : next_of_pool(w);
  if (next != nullptr) {
    // It may have a mask that nobody has told us of: that of a signal's handler.
    note_mask(w, me, base::signal_mask());
    if (by_program) add_seen(&w->counts.yields);
    w->post = {requeue_who_gave_way, me};
    switch_to(w, me, next);
  }
  leave(me);
  return next != nullptr;
}

bool give_way(Thread* me) { return give_turn(me, true); }

bool let_others_run(Thread* me) { return give_turn(me, false); }

bool is_alone(const Thread* me) {
  context::preempt_disable();
  Worker* w = me->worker;
  const bool alone =
      w != nullptr && me->serving == nullptr && w->unreported_groups == 0 && !something_else(w);
  context::preempt_enable();
  return alone;
}

}  // namespace bosk::sched
