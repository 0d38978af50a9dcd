// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Timer preemption. docs/architecture.md and docs/design/identity.md give the rules.
//
// A tick interrupts user code on the thread's own stack. If the worker has something else to run, the
// handler switches there directly; the preempted thread goes on later, on any worker, by returning
// from its handler (signal-yield). A thread that was interrupted at a system call may be blocked in
// the kernel for ever: it goes on on its own donor's kernel thread (promotion), or, if it is a native
// thread, keeps its kernel thread while the worker's role moves to a spare one.
#include "sched/preemption.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/message.h"
#include "context/annotations.h"
#include "context/park_stacks.h"
#include "context/setxid.h"
#include "sched/configuration.h"
#include "sched/cpu_clock.h"
#include "sched/gangs.h"
#include "sched/homes.h"
#include "sched/interrupted_call.h"
#include "sched/joint_turn.h"
#include "sched/kernel_threads.h"
#include "sched/machine_context.h"
#include "sched/pause.h"
#include "sched/preemption_protocol.h"
#include "sched/scheduler.h"
#include "sched/search.h"
#include "sched/spins/outside.h"
#include "sched/spins/polling_teams.h"
#include "sched/spins/probe_at_tick.h"
#include "sched/spins/slices.h"
#include "sched/tick_timer.h"
#include "sched/time_samples.h"
#include "sched/tuning.h"
#include "sched/turns.h"

namespace bosk::sched {
namespace {

struct KernelStack {
  void* low;
  int flags;
  size_t size;
};

/// Work is queued in the thread's team. Members that end, or come to wait, may take it up.
bool team_work_waits(const Thread* me) {
  return me->bubble != nullptr && me->bubble->queued_work.load(std::memory_order_relaxed) != 0;
}

/// For a tick that has just set its timer, and goes on with `me`. Whose bubble is closed while the tick is on its way
/// (two of a gang tick at the same moment, and the other's ends the slice) had a tick soon set on this timer, and that is
/// undone. It set it after it had noted that it waits for `me`; so who set the timer later sees the note.
void go_if_recalled(const EntitySource* entities, const Thread* me, context::Identity* kernel) {
  if (BOSK_UNLIKELY(me->is_entity()) && entities->is_recalled(me)) tick_soon(kernel);
}

/// The thread that was in its tick's handler has left its stack: who goes on cooperatively gets his mask, who
/// returns from a handler of his own has it in that frame.
void open_mask(const Worker* w) {
  const Thread* next = w->current;
  if ((next->notes & kInTick) == 0) base::set_signal_mask(mask_of(w, next));
}

void requeue_preempted(void* argument, Worker* w) {
  auto* thread = static_cast<Thread*>(argument);
  open_mask(w);
  await_turn(thread, w);
  call_gang_if_due(w);
}

void run_on_own_kernel_thread(void* argument, Worker* w) {
  auto* thread = static_cast<Thread*>(argument);
  open_mask(w);
  context::Identity* donor = thread->identity;
  resume_cpu_time(thread, donor);
  // No tick before it has returned from its handler; sigreturn restores its own mask.
  context::release_to(thread);
  run_there(*donor, thread->sp, ~base::KernelSigset{0});
}

void go_on_on_own_kernel_thread(void* argument, Worker* w) {
  auto* thread = static_cast<Thread*>(argument);
  const base::KernelSigset mask = mask_of(w, thread);
  context::Identity* donor = thread->identity;
  resume_cpu_time(thread, donor);
  context::release_to(thread);
  run_there(*donor, thread->sp, mask);
}

/// The native thread keeps its kernel thread; the role goes to a carrier on its donor's kernel thread.
/// False: there is no carrier yet.
bool lend_role(Worker* w, Thread* me) {
  Thread* stand_in = take_carrier(w);
  if (stand_in == nullptr) {
    request_carriers(2);
    return false;
  }
  add_seen(&w->counts.promotions);
  w->pool->promoted.fetch_add(1, std::memory_order_relaxed);
  lend_to(*w, *me, *stand_in, w->pool->base_mask, [stand_in](context::Identity* kernel) {
    arm_kernel_timer(kernel);
    context::release_to(stand_in);
  });
  return true;
}

void wake_native(void* argument) {
  give_role_back(*static_cast<Thread*>(argument), return_carrier);
}

void publish_demoted(void* argument) {
  auto* thread = static_cast<Thread*>(argument);
  Worker* w = thread->last_worker;
  Pool* pool = w->pool;
  pool->promoted.fetch_sub(1, std::memory_order_relaxed);
  enter_pool(pool);
  w->ready.enqueue(thread);
  wake_worker(w);
  note_ready(w);
  leave_pool(pool);
}

/// sigreturn installs what it finds in the frame: that must be this kernel thread's, not that of the one before.
void take_alternate_stack(ucontext_t* interrupted) {
  KernelStack stack{};
  base::raw_syscall(SYS_sigaltstack, 0, base::address_of(&stack));
  interrupted->uc_stack.ss_sp = stack.low;
  interrupted->uc_stack.ss_flags = stack.flags;
  interrupted->uc_stack.ss_size = stack.size;
}

/// What the handler does last on a context that was switched out and back. All signals are blocked; sigreturn
/// restores the thread's own mask.
/// `kernel`: the thread was interrupted there. On the same one, the alternate stack that it had there is what its frame says,
/// whatever others have set there meanwhile.
void finish_tick(Thread* me, ucontext_t* interrupted, const context::Identity* kernel) {
  me->note(kInTick, false);
  if (kernel_of(me) != kernel) take_alternate_stack(interrupted);
}

/// The digest takes as long as ten registers.
Sight seen_at(const ucontext_t* interrupted) {
  return {interrupted_program_counter(interrupted), interrupted_state(interrupted),
          is_after_call(interrupted)};
}

/// Preemption is off. True: other threads ran meanwhile, or this is another kernel thread now.
bool serve_tick(Thread* me, ucontext_t* interrupted, const InterruptedCall& call) {
  const bool at_system_call = call.at_call();
  Worker* w = me->worker;
  if (w == nullptr) {
    // Promoted. Outside of system calls it gives its extra kernel thread back.
    if (!at_system_call) {
      const context::Identity* kernel_before = kernel_of(me);
      me->note(kInTick, true);
      reacquire_role(me);
      finish_tick(me, interrupted, kernel_before);
    }
    return !at_system_call;
  }
  context::Identity* kernel = w->kernel.load(std::memory_order_relaxed);
  // Where nodes are kept nobody else would send back a worker that never waits, because it has always somebody to go on with,
  // or is the last one at each barrier. Not in the middle of a system call, which may be about the thread's CPUs. relaxed:
  // a preference.
  const bool keeps_node = w->pool->keeps_nodes.load(std::memory_order_relaxed);
  if (BOSK_UNLIKELY(keeps_node) && !at_system_call) look_where_nodes_are_kept(w);
  const EntitySource* entities = entities_of(w);
  auto verdict_of_bubble = TickVerdict::kNothing;
  if (BOSK_UNLIKELY(me->is_entity())) {
    if (!entities->preemptible(me)) {
      return false;
    }
    verdict_of_bubble = entities->tick(me);
  }
  const bool slice_over = verdict_of_bubble == TickVerdict::kLeave;
  const Sight sight = seen_at(interrupted);
  if (BOSK_UNLIKELY(me->serving != nullptr)) note_serving(w, me);
  // Outside of all regions there is nothing to run: what is left in the mail is of past ones.
  const bool in_region = me->bubble == nullptr || entities != nullptr ||
                         me->bubble->depth.load(std::memory_order_relaxed) != 0;
  if (!in_region && !at_system_call && w->native == me &&
      gives_cpu_away_outside(w, me, kernel, sight))
    return false;
  bool spins = false;
  const bool is_watched =
      !at_system_call && !slice_over && period_of_ticks(false) > tuning::kQuickTickNs;
  Bubble* turn = is_watched ? team_in_turn(w) : nullptr;
  // Members of a gang may poll for each other as they please.
  const bool in_gang = BOSK_UNLIKELY(gangs_exist()) && gang_of(me->bubble) != nullptr;
  if (BOSK_UNLIKELY(gangs_exist()) && at_system_call && !slice_over) {
    // On a kernel thread of its own a member would be in nobody's turn. Who stays in the kernel leaves its worker as ever: what it waits for,
    // a lock of libc's perhaps, may be held by a member that has to run here.
    if ((in_gang || gang_in_turn(w) != nullptr) && look_for_gang_again(me, kernel)) return false;
  }
  if (turn != nullptr && me->bubble != nullptr && descends_from(me->bubble, turn)) {
    part_from_busy_neighbours(w);
    if (BOSK_UNLIKELY(in_gang)) {
      // Quick ones have done their work.
      if (kernel->quick_ticks.load(std::memory_order_relaxed)) set_slice(kernel, 0);
      return false;
    }
    if (gets_on_in_turn(me, kernel, sight)) return false;
    end_turn(w);
    turn = nullptr;
  }
  // Whose turn is a gang's goes on or not whatever it does.
  const bool gangs_turn =
      BOSK_UNLIKELY(gangs_exist()) && turn != nullptr && gang_in_turn(w) == turn;
  bool is_far;
  if (is_watched && !in_gang && !gangs_turn &&
      (something_else(w) || others_have_ready_thread(w, Far::kIfItIsTime, &is_far))) {
    const bool trusted = is_trusted(w, me, sight.pc) || is_at_yield(interrupted);
    const auto verdict = probe_at_tick(w, me, kernel, sight, trusted);
    if (verdict == SpinProbe::Verdict::kLookAgain) return false;
    spins = verdict == SpinProbe::Verdict::kSpins;
    if (spins) {
      if (!trusted) w->doubts = 0;
      part_from_busy_neighbours(w);
      note_polling(me, sight.pc);
      if (turn == nullptr && begin_turn_for_ghosts(w, me)) {
        set_slice(kernel, me->slice_ns = tuning::kHandOverTickNs);
        return false;
      }
    } else {
      if (polling_loops.has(block_of_code(sight.pc))) note_computing(w, me, sight.pc);
      if (turn == nullptr && goes_on(me, kernel)) return false;
    }
  }
  w->called_for_ghosts_of = 0;
  Thread* share = nullptr;
  if (BOSK_UNLIKELY(in_gang) && is_watched && in_region) {
    share = next_after_turn(w, me, turn);
    if (share == me) {
      if (team_in_turn(w) != gang_of(me->bubble)) look_for_gang_again(me, kernel);
      return false;
    }
  } else if (turn != nullptr && in_region) {
    share = take_member_of(w, turn);
    if (gangs_turn && share == nullptr) {
      look_for_gang_again(me, kernel);
      return false;
    }
  }
  // Its team has gone to another node, where somebody has nothing to do; or what has not begun is for that one.
  const bool stays_here = !in_region || slice_over || share != nullptr || at_system_call;
  const bool follows = !stays_here && worker_with_team(w, me) != w;
  if (!stays_here && !follows && !spins && BOSK_UNLIKELY(leaves_all_to_adopter(w))) return false;
  if (!in_region || (!slice_over && !follows && share == nullptr && !something_else(w) &&
                     (share = fair_share(w)) == nullptr)) {
    // With a group or a native thread waiting here, what it waits for may come without anybody
    // telling this worker: the timer goes on.
    const bool in_kept_node =
        keeps_node && (me->is_entity() || (me->bubble != nullptr &&
                                           me->bubble->depth.load(std::memory_order_relaxed) != 0));
    const bool somebody_waits = w->groups != nullptr || w->native_condition.is_set() ||
                                team_work_waits(me) || in_kept_node ||
                                verdict_of_bubble == TickVerdict::kSliceRuns;
    const uint32_t idle = kernel->idle_ticks.load(std::memory_order_relaxed) + 1;
    kernel->idle_ticks.store(idle, std::memory_order_relaxed);
    if (!somebody_waits && idle > tuning::kIdleTicks &&
        disarm_ticks_unless<base::StdAtomics>(
            kernel->timer_armed, [kernel] { stop_timer(kernel); },
            [=] {
              return (in_region && something_else(w)) ||
                     (me->is_entity() && entities->is_recalled(me));
            })) {
      arm_kernel_timer(kernel);
      go_if_recalled(entities, me, kernel);
    }
    return false;
  }
  kernel->idle_ticks.store(0, std::memory_order_relaxed);
  const bool is_native = me->pinned != nullptr;
  if (at_system_call && is_native) {
    if (lend_role(w, me)) {
      if (share != nullptr) w->ready.enqueue(share);
      return false;
    }
    // The carrier may be long in coming: libc's locks stand in its way, and whoever holds one may wait in
    // our queue. So the thread is preempted like any other; its system call begins again when it is back.
    if (share == nullptr && (share = pop_ready(w)) == nullptr) {
      return false;
    }
  }
  if (w->groups != nullptr) poll_groups(w);
  Thread* next = share != nullptr ? share : next_in_turn(w);
  if (next == nullptr) {
    go_if_recalled(entities, me, kernel);
    return false;
  }
  w->calls_turn |= is_watched && turn == nullptr && begin_turn_of(w, next);
  if (w->calls_turn || turn != nullptr) next->spin_state = 0;
  next->slice_ns = static_cast<uint32_t>(first_slice(w, next, spins));
  set_slice(kernel, next->slice_ns);
  add_seen(&w->counts.preemptions);
  if (at_system_call && !is_native) {
    add_seen(&w->counts.promotions);
    me->last_worker = w;
    w->pool->promoted.fetch_add(1, std::memory_order_relaxed);
    w->post = {run_on_own_kernel_thread, me};
    set_seen(&me->worker, nullptr);
  } else {
    w->post = {requeue_preempted, me};
  }
  if (w->unreported_groups != 0) report_arrivals(w);
  note_mask(w, me, interrupted_mask(interrupted));
  me->note(kInTick, true);
  switch_to(w, me, next);
  if (me->worker == nullptr) arm_kernel_timer(me->identity);
  finish_tick(me, interrupted, kernel);
  return true;
}

/// For the report. True: it is to be looked at again.
bool look_for_report(Thread* me, const ucontext_t* interrupted) {
  Worker* w = me->worker;
  const Doing doing = what_does(me);
  const auto verdict = w->poll_looks.look(me, state_at_hand(interrupted), base::cycles());
  if (verdict == PollLooks::Verdict::kLookAgain) return true;
  const Does does = verdict == PollLooks::Verdict::kPolls || is_at_yield(interrupted)
                        ? Does::kPolling
                        : Does::kComputing;
  now_does(me, {does, doing.region});
  return false;
}

/// A tick of a thread that computes in a region. True: it came for the report alone.
bool serve_report(Thread* me, const ucontext_t* interrupted) {
  const Does does = what_does(me).what;
  if (me->worker == nullptr || (does != Does::kComputing && does != Does::kPolling)) return false;
  context::Identity* kernel = me->worker->kernel.load(std::memory_order_relaxed);
  const bool for_this = kernel->timer_armed.load(std::memory_order_relaxed) == 0;
  if (look_for_report(me, interrupted)) {
    PollLooks& looks = me->worker->poll_looks;
    const uint64_t pause = looks.end_look(base::cycles());
    if (!for_this || !look_again_in(kernel, pause)) looks.leave_to_ticks();
  }
  return for_this;
}

void on_tick(void* context_pointer, int value) {
  context::ThreadBlock* block = context::thread_block();
  Thread* me = block->self;
  if (value == kSampleTick && me != nullptr) note_sample(me);
  // In the scheduler, which begins its calls again itself.
  if (me == nullptr || block->preempt_off != 0) return;
  auto* interrupted = static_cast<ucontext_t*>(context_pointer);
  // A tick that comes late meets a donor's kernel thread in its park loop, which lets this signal in, and has the
  // donor's identity, which is lent: whoever runs under it runs elsewhere.
  if (context::ParkStacks::contains(block->identity->park_slab,
                                    interrupted_stack_pointer(interrupted)))
    return;
  context::Identity* kernel = kernel_of(me);
  block->preempt_off = 1;
  ++me->ticks;
  const InterruptedCall call = interrupted_call(interrupted, kernel->call_note);
  kernel->call_note.clear();
  // A handler of the program's that runs on its alternate stack cannot be moved; nor can we, if somebody has
  // made our handler run there.
  const stack_t& alternate = interrupted->uc_stack;
  const uintptr_t alternate_low = reinterpret_cast<uintptr_t>(alternate.ss_sp);
  const auto is_there = [&](uintptr_t sp) {
    return (alternate.ss_flags & SS_DISABLE) == 0 && sp - alternate_low < alternate.ss_size;
  };
  bool moved = false;
  if (value != kSampleTick && !is_there(interrupted_stack_pointer(interrupted)) &&
      !is_there(reinterpret_cast<uintptr_t>(__builtin_frame_address(0))) && !pause_is_on() &&
      !(BOSK_UNLIKELY(sampling()) && !call.at_call() && serve_report(me, interrupted)))
    moved = serve_tick(me, interrupted, call);
  // The block is the identity's, so it is the same on whatever kernel thread this is now.
  block->preempt_off = 0;
  // Moved, and the donor whose kernel thread that was may have ended.
  if (!moved && BOSK_UNLIKELY(kernel->poll_pause_due)) pause_outside(kernel);
  if (BOSK_LIKELY(!call.is_cut())) return;
  continue_call(me, interrupted, call, moved);
  // A tick may have taken the thread elsewhere while it waited.
  take_alternate_stack(interrupted);
}

}  // namespace

context::FloatControl hand_role_over(Worker* w, Thread* from, Thread* to) {
  context::Identity* stand_in = w->kernel.load(std::memory_order_relaxed);
  take_role_back(*w, *to, disarm_timer, arm_kernel_timer);
  w->pool->promoted.fetch_sub(1, std::memory_order_relaxed);
  stand_in->parked_argument = to;
  stand_in->parked_action = wake_native;
  return context::annotated_switch(&from->sp, stand_in->park_sp, stand_in->thread_pointer, to,
                                   from);
}

void reacquire_role(Thread* me) {
  Worker* w = me->last_worker;
  context::Identity* own = me->identity;
  if (me->pinned != nullptr) {
    // On its own kernel thread: wait there until whoever plays the role hands it over.
    context::Identity* here = me->own;
    w->ready.enqueue(me);
    wake_worker(w);
    note_ready(w);
    here->command.take();
    context::acquire_from(me);
  } else {
    // On its donor's kernel thread, which goes back to its park loop and publishes the thread there.
    disarm_timer(own);
    leave_cpu_time(me);
    own->parked_argument = me;
    own->parked_action = publish_demoted;
    context::annotated_switch(&me->sp, own->park_sp, 0, own, me);
  }
  after_switch(me);
}

void go_to_own_kernel_thread(Thread* me) {
  Worker* w = enter(me);
  if (me->identity != w->kernel.load(std::memory_order_relaxed) && !on_alternate_stack()) {
    Thread* next = next_thread(w);
    if (next->bubble != nullptr || next->thread_kind != ThreadKind::kCarrier)
      report_before(w, next->bubble);
    add_seen(&w->counts.promotions);
    note_mask(w, me, base::signal_mask());
    me->last_worker = w;
    w->pool->promoted.fetch_add(1, std::memory_order_relaxed);
    w->post = {go_on_on_own_kernel_thread, me};
    set_seen(&me->worker, nullptr);
    switch_to(w, me, next);
    arm_kernel_timer(me->identity);
  }
  leave(me);
}

void start_preemption() { context::set_tick_handler(on_tick); }

}  // namespace bosk::sched
