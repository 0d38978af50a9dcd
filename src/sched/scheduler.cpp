// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Switching, blocking, and the loop that looks for work.
#include "sched/scheduler.h"

#include "sched/configuration.h"
#include "sched/cpu_clock.h"
#include "sched/ghost_identity.h"
#include "sched/joint_turn.h"
#include "sched/task_calls.h"

namespace bosk::sched {

/// What a thread must still have below it to run a member there.
static size_t needed_below() {
  constexpr size_t kTrifle = 256 * 1024;
  const size_t promised = configuration().stack_size;
  return promised - (promised / 4 < kTrifle ? promised / 4 : kTrifle);
}

void set_serve_floor(Thread* thread, const char* stack_low, const char* stack_high, bool grows) {
  const size_t needed = needed_below();
  auto has = static_cast<size_t>(stack_high - stack_low);
  // Without a limit the initial thread's has terabytes, of which no more is claimed than is of use.
  if (grows && has / 2 > needed) has = 2 * needed;
  thread->serve_room = thread->serve_room_if_grown = 0;
  if (has <= needed) return;
  (grows ? thread->serve_room_if_grown : thread->serve_room) = has - needed;
  thread->serve_floor = reinterpret_cast<uintptr_t>(stack_high) - (has - needed);
}

bool may_serve_when_grown(Thread* me, uintptr_t frame) {
  const uintptr_t room = me->serve_room_if_grown;
  if (frame - me->serve_floor >= room) return false;
  // What such a stack has grown to is its own for good. By what it may still grow the limit of that moment says,
  // which the program may have lowered, or may lower while members run. So it grows now, to all that they may need:
  // the kernel is asked to write into the lowest word, and refuses where we would crash.
  me->serve_room_if_grown = 0;
  if (base::raw_syscall(SYS_getcpu, static_cast<long>(me->serve_floor - needed_below()), 0, 0) != 0)
    return false;
  me->serve_room = room;
  return true;
}

/// Signal masks belong to threads, the kernel's to kernel threads. Nothing of the program's may run on top of
/// a tick's handler (it could leave it by siglongjmp): all is blocked before a switch to a thread that is in
/// one, until it returns, and after a switch from one until the next thread has left that stack (requeue in
/// preemption.cpp). Between other threads the mask is set if it is not their pool's.
void note_switch(const Worker* w, Thread* from, Thread* to) {
  if (BOSK_UNLIKELY(((from->notes | to->notes) & kAsksCpuTime) != 0)) switch_cpu_time(w, from, to);
  if (from->is_entity()) entities_of_thread(from)->left(from);
  if (to->is_entity()) entities_of_thread(to)->comes(to, w);
  if ((from->notes & kInTick) != 0) return;
  // It may have changed it again, by a call that nobody told us of or by returning from a handler.
  if ((from->notes & kOwnMask) != 0) note_mask(w, from, base::signal_mask());
  if ((to->notes & kInTick) != 0)
    base::set_signal_mask(~base::KernelSigset{0});
  else if (((from->notes | to->notes) & kOwnMask) != 0)
    base::set_signal_mask(mask_of(w, to));
}

static Thread* take_native_if_due(Worker* w) {
  if (!w->native_condition.holds(w->native)) return nullptr;
  w->native_condition.clear();
  return w->native;
}

Thread* next_thread(Worker* w) {
  for (;;) {
    if (Thread* native = take_native_if_due(w)) return native;
    if (Thread* ready = pop_ready(w)) return ready;
    if (BOSK_UNLIKELY(entities_of(w) != nullptr) && !has_ghosts(w))
      if (Thread* entity = next_entity(w, kNoEntity)) return entity;
    if (Thread* carrier = take_carrier(w)) return carrier;
    if (Thread* entity = started_entity(w)) return entity;
    wait_for_carrier(w);
    if (w->leaving_is_free) return w->leaving;
  }
}

/// A carrier that goes to look for work reports when it knows whose it found.
static void report_before_switch(Worker* w, const Thread* next) {
  if (next->bubble != nullptr || next->thread_kind != ThreadKind::kCarrier)
    report_before(w, next->bubble);
}

void block(Thread* me, Post post) { block_for(me, post, next_thread(me->worker)); }

void block_for(Thread* me, Post post, Thread* next) {
  Worker* w = me->worker;
  report_before_switch(w, next);
  add_seen(&w->counts.blocked);
  w->post = post;
  if (next == me) {
    // A native thread whose condition, or a member of a group whose barrier, came true meanwhile.
    if (w->leaving == me) {
      w->post.action = nullptr;
      w->leaving = nullptr;
      w->leaving_is_free = false;
    } else {
      after_switch(me);
    }
    return;
  }
  switch_to(w, me, next);
}

void make_ready(Thread* thread, Worker* near, bool front) {
  if (BOSK_UNLIKELY(thread->is_entity()) && thread->pinned == nullptr) {
    // In front: it has a stack, and those that have not started would take more of them first. Ticks put
    // it behind the others all the same.
    entity_ready(thread, near, true);
    return;
  }
  Worker* target = thread->pinned != nullptr ? thread->pinned : near;
  target->ready.enqueue(thread, front);
  if (target != near || context::self() == nullptr) {
    // The fence orders the queue's store before the load of the target's state (see ParkingSpot).
    wake_worker(target);
    note_ready(target);
  }
}

static void requeue(void* argument, Worker* w) {
  auto* thread = static_cast<Thread*>(argument);
  if (BOSK_UNLIKELY(thread->is_entity()) && thread->pinned == nullptr) {
    entity_ready(thread, w, false);
    return;
  }
  (thread->pinned != nullptr ? thread->pinned : w)->ready.enqueue(thread);
}

void yield(Thread* me) {
  Worker* w = me->worker;
  Thread* next = take_native_if_due(w);
  if (next == nullptr) next = pop_ready(w);
  if (next == nullptr) return;
  report_before(w, next->bubble);
  w->post = {requeue, me};
  switch_to(w, me, next);
}

void yield_to_entities(Thread* me, int32_t above) {
  constexpr int kPatience = 4;  // waits of about a millisecond
  for (int tries = 1;; ++tries) {
    Worker* w = me->worker;
    Thread* next = take_native_if_due(w);
    if (next == nullptr) next = pop_ready(w);
    if (next == nullptr) next = next_entity(w, above);
    if (next != nullptr) {
      report_before(w, next->bubble);
      w->post = {requeue, me};
      switch_to(w, me, next);
      return;
    }
    if (!has_entities(w, above)) return;
    // It is to start, and there is no carrier. One that has started may keep the factory from making some.
    wait_for_carrier(w);
    if (tries % kPatience == 0) yield_to_started(me);
  }
}

bool yield_to_started(Thread* me) {
  Worker* w = me->worker;
  Thread* next = started_entity(w);
  if (next == nullptr) return false;
  report_before(w, next->bubble);
  w->post = {requeue, me};
  switch_to(w, me, next);
  return true;
}

void let_worker_go_on(Thread* me) {
  Worker* w = me->worker;
  if (w->unreported_groups != 0) report_arrivals(w);
  if (w->groups != nullptr) poll_groups(w);
  if (!w->ready.empty_hint()) {
    yield(me);
  } else if (has_entities(w)) {
    yield_to_entities(me, kNoEntity);
  } else if (has_ghosts(w)) {
    if (Thread* carrier = take_carrier(w)) {
      w->ghosts_first = true;
      w->post = {requeue, me};
      switch_to(w, me, carrier);
    } else {
      request_carriers(1);
    }
  }
}

/// The ghost's thread is reserved until the team ends, and may be taken up again from then on: it must
/// have left its stack before anybody learns that it has finished.
static void assigned_ghost_left(void* argument, Worker* w) {
  auto* thread = static_cast<Thread*>(argument);
  Bubble* bubble = thread->assigned;
  thread->assigned = nullptr;
  if (!thread->assigned_persistent) hold_identities(bubble, thread->own, thread->own);
  complete_members(w, bubble, 1);
}

/// A carrier has run the program's code: what that did to its mask is not for those who come after.
static void forget_mask(const Worker* w, Thread* me) {
  if (BOSK_LIKELY((me->notes & kOwnMask) == 0)) return;
  base::set_signal_mask(w->pool->base_mask);
  me->note(kOwnMask, false);
}

static void run_assigned(Thread* me) {
  me->errand = Errand::kNone;
  leave(me);
  me->assigned->serve_assigned(me->assigned, me, me->assigned_index);
  Worker* w = enter(me);
  forget_mask(w, me);
  Thread* next = next_thread(w);
  report_before_switch(w, next);
  me->bubble = nullptr;
  w->post = {assigned_ghost_left, me};
  switch_to(w, me, next);
}

void assign_ghost(Thread* me, Bubble* bubble, uint32_t index) {
  const bool persistent = bubble->persistent;
  // This thread may have to wait, and the other one may be preempted before it is a member: both already as
  // one of the team, whose reach holds for them.
  me->set_bubble(bubble);
  context::Identity* identity =
      persistent ? member_identity(me, index - bubble->first_ghost) : fresh_identity(me);
  me->bubble = nullptr;
  Worker* w = me->worker;
  Thread* thread = own_thread(identity);
  thread->set_bubble(bubble);
  thread->pool = w->pool;
  thread->assigned = bubble;
  thread->assigned_index = index;
  thread->errand = Errand::kGhost;
  thread->assigned_persistent = persistent;
  give_carrier(w, me);
  switch_to(w, me, thread);
}

/// Runs ghosts of the bubble on this thread until none is left, and reports them. Called with
/// preemption off, runs them with preemption on.
/// `claim`: the first one; there may be none.
static inline void run_ghosts(Thread* me, Bubble* bubble, Claim claim,
                              context::FloatControl floats) {
  if (!claim) return;
  report_before(me->worker, bubble);
  arm_timer(me->worker);
  if (BOSK_UNLIKELY(bubble->own_stacks)) {
    assign_ghost(me, bubble, bubble->ghost_at(claim.index));
    return;
  }
  // It may be preempted before it is a member: already as one of the team, whose reach holds for it.
  me->set_bubble(bubble);
  Serving serving{bubble, nullptr, nullptr, {}};
  me->serving = &serving;
  leave(me);
  const Served served = bubble->serve(bubble, me, claim, floats);
  Worker* w = enter(me);
  me->serving = nullptr;
  forget_mask(w, me);
  if (BOSK_UNLIKELY(asks_cpu_time(me))) forget_cpu_time(me);
  me->bubble = nullptr;
  note_ended_ghosts(w, bubble, served);
  note_ended_of(w, bubble);
  complete_members(w, bubble, served.count);
}

void carrier_loop(Thread* me) {
  // The floating-point environment that this thread is in; unknown after it ran the program's code.
  bool floats_known = false;
  context::FloatControl floats{};
  for (;;) {
    if (BOSK_UNLIKELY(me->errand != Errand::kNone)) {
      if (me->errand == Errand::kGhost)
        run_assigned(me);
      else
        start_entity(me);
      floats_known = false;
      continue;
    }
    Worker* w = me->worker;
    if (BOSK_UNLIKELY(me->identity == w->kernel.load(std::memory_order_relaxed))) {
      // This carrier's own kernel thread plays the role: it must not run anything that could need that
      // kernel thread for itself (promotion), nor be taken by another worker. It waits until the role
      // goes back.
      Thread* other = next_thread(w);
      report_before_switch(w, other);
      w->keeper = me;
      switch_to(w, me, other);
      continue;
    }
    Thread* next = take_native_if_due(w);
    if (BOSK_UNLIKELY(w->wanted != nullptr) && next == nullptr) {
      Bubble* bubble = w->wanted;
      w->wanted = nullptr;
      if (worth_taking(w, bubble)) {
        call_gang_if_due(w);
        run_ghosts(me, bubble, claim_found(w, bubble), context::float_state());
        floats_known = false;
        continue;
      }
    }
    if (BOSK_UNLIKELY(w->ended_of != nullptr) && next == nullptr) {
      Bubble* bubble = w->ended_of;
      w->ended_of = nullptr;
      if (await_next_region(w, bubble)) {
        run_ghosts(me, bubble, claim_found(w, bubble),
                   floats_known ? floats : context::float_state());
        floats_known = false;
        continue;
      }
    }
    const bool ghosts_first = w->ghosts_first;
    if (next == nullptr && !ghosts_first) next = pop_ready(w);
    w->ghosts_first = false;
    if (BOSK_UNLIKELY(w->called_for != nullptr)) next = answer_call(w, next);
    if (next == nullptr && BOSK_UNLIKELY(gangs_exist())) {
      call_gang_if_due(w);
      Bubble* gang = gang_in_turn(w);
      if (gang != nullptr && worth_taking(w, gang)) {
        run_ghosts(me, gang, claim_found(w, gang), context::float_state());
        floats_known = false;
        continue;
      }
    }
    if (next == nullptr) {
      Bubble* bubble = newest_open_bubble(w);
      if (bubble != nullptr && (ghosts_first || !is_left_to_adopter(w, bubble)) &&
          may_run(w, bubble)) {
        call_gang_if_due(w);
        // Not by way of the share: before the claim the object may be recycled, nothing else of it is read.
        run_ghosts(me, bubble, claim_opened_here(w, bubble),
                   floats_known ? floats : context::float_state());
        floats_known = false;
        continue;
      }
      if (const auto look = w->share.look(); look && may_run(w, look.team)) {
        run_ghosts(me, look.team, w->share.take(look), context::float_state());
        floats_known = false;
        continue;
      }
      if (w->unreported_groups != 0) report_arrivals(w);
      if (w->groups != nullptr && poll_groups(w)) continue;
      if (w->groups != nullptr) next = take_waiting_member(w);
      if (next == nullptr && run_entity(me, &next)) {
        floats_known = false;
        continue;
      }
    }
    if (next == nullptr) {
      Bubble* bubble = w->mail.load(std::memory_order_acquire);
      if (bubble != nullptr) {
        w->mail.store(nullptr, std::memory_order_relaxed);
        if (BOSK_UNLIKELY(bubble == kLookAfar)) {
          if (look_afar(w)) continue;
          bubble = nullptr;
        }
        if (bubble == kLookAround) bubble = nullptr;
      }
      if (bubble == nullptr || !worth_taking(w, bubble)) bubble = steal_bubble(w);
      if (bubble != nullptr) {
        call_gang_if_due(w);
        run_ghosts(me, bubble, claim_found(w, bubble),
                   floats_known ? floats : context::float_state());
        floats_known = false;
        continue;
      }
      if (EndedMembers* ended = ended_that_may_help(w)) {
        help_team(me, ended);
        floats_known = false;
        continue;
      }
      if (BOSK_UNLIKELY(gangs_exist()) && nap_if_refused(w)) continue;
      if (idle_until_work(w)) continue;
      next = steal_ready_thread(w);
      call_gang_if_due(w);
      if (next == nullptr) continue;
    }
    report_before(w, next->bubble);
    give_carrier(w, me);
    floats = switch_to(w, me, next);
    floats_known = true;
  }
}

}  // namespace bosk::sched
