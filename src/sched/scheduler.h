// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The scheduler's inner interface: switching, blocking, waking, opening and joining bubbles.
//
// Unless said otherwise these are called with preemption off in the calling thread's block.
#pragma once

#include <stdint.h>

#include "base/assert.h"
#include "context/annotations.h"
#include "context/setxid.h"
#include "context/switch.h"
#include "context/thread_block.h"
#include "sched/gangs.h"
#include "sched/nearness.h"
#include "sched/preemption.h"
#include "sched/worker.h"

namespace bosk::sched {

// ---- switching (scheduler.cpp)

/// One of the two has SwitchNotes, or both have.
[[gnu::cold]] void note_switch(const Worker* w, Thread* from, Thread* to);

/// The kernel thread that runs the bound thread `me` from here on is bound to its place.
void follow_place(Thread* me);

// ---- explicit threads (entities.cpp)
inline const EntitySource* entities_of(const Worker* w) {
  return w->pool->entities.load(std::memory_order_acquire);
}
/// Is there one for the worker, of priority greater than `above`? A hint.
inline bool has_entities(const Worker* w, int32_t above = kNoEntity) {
  const EntitySource* source = entities_of(w);
  return BOSK_UNLIKELY(source != nullptr) && source->has_work(w, above);
}
inline const EntitySource* entities_of_thread(const Thread* context) {
  return context->pool->entities.load(std::memory_order_acquire);
}
/// The context of one is ready; pinned ones are not for this.
void entity_ready(Thread* context, Worker* near, bool front);
/// For the worker to switch to: a context, or a carrier that will start one. Null: none, or no carrier.
Thread* next_entity(Worker* w, int32_t above);
/// A carrier for the worker to go on with at once if the calling thread blocked, because nothing else comes first
/// (but for entities, which the caller knows of). Null: something does, or there is no carrier.
Thread* carrier_to_go_on(const Thread* me);
/// The caller blocks as in wait_on(), while its worker starts `thread` on that carrier. Nobody but the thread changes
/// the word.
void wait_for_entity(Thread* me, const std::atomic<uint32_t>& word, uint32_t expected,
                     ExplicitThread* thread, Thread* carrier);
/// For when there is no carrier: one that has started. Null: none.
Thread* started_entity(Worker* w);
/// On a carrier: looks for one and starts it (true), or says which context to switch to.
bool run_entity(Thread* me, Thread** next);
/// By an idle worker that was called: true, there is something in its reach now.
bool look_afar(Worker* w);
/// The carrier's errand.
void start_entity(Thread* me);
/// Lets others run that are ready, explicit threads of a priority greater than `above` among them.
void yield_to_entities(Thread* me, int32_t above);
/// Lets one run that has started, if there is one: true.
bool yield_to_started(Thread* me);
/// `count` entities are ready for the PUs first_pu … last_pu of `n_pus`: calls idle workers of these,
/// or sees to it that somebody's timer ticks. `w`: the caller, if it plays a worker of the pool. Returns for
/// how many of them nobody was idle.
uint32_t call_for_entities(Pool* pool, Worker* w, uint32_t first_pu, uint32_t last_pu,
                           uint32_t n_pus, uint32_t count);
/// Calls the idle worker that is nearest to the domain, if there is one, to look_afar().
void call_from_afar(Pool* pool, const Worker* w, const topology::Machine& machine,
                    const topology::Domain& domain);

/// The kernel thread that runs `me`, which is not in the scheduler.
inline context::Identity* kernel_of(const Thread* me) {
  const Worker* w = me->worker;
  if (w != nullptr) return w->kernel.load(std::memory_order_relaxed);
  return me->pinned != nullptr ? me->own : me->identity;
}

/// The thread's signal mask.
inline base::KernelSigset mask_of(const Worker* w, const Thread* thread) {
  return (thread->notes & kOwnMask) != 0 ? thread->mask : w->pool->base_mask;
}

/// It has this one now.
inline void note_mask(const Worker* w, Thread* thread, base::KernelSigset mask) {
  thread->mask = mask & ~base::signal_bit(context::signal_of_ticks());
  thread->note(kOwnMask, thread->mask != w->pool->base_mask);
}

inline void after_switch(Thread* me) {
  Worker* w = me->worker;
  if (BOSK_UNLIKELY(w != nullptr && w->post.action != nullptr)) {
    const Post post = w->post;
    w->post.action = nullptr;
    post.action(post.argument, w);
  }
  if (BOSK_UNLIKELY(me->place != 0)) follow_place(me);
}

/// Leaves `from` for `to` on this worker; returns when `from` is switched to again, perhaps on another
/// worker. w->post is done by whoever runs next. Returns what bosk_context_switch() returned.
inline context::FloatControl switch_to(Worker* w, Thread* from, Thread* to) {
  BOSK_ASSERT(from != to);
  // One branch for both, on lines that the switch needs anyway.
  if (BOSK_UNLIKELY((from->notes | to->notes) != 0)) note_switch(w, from, to);
  set_seen(&to->worker, w);
  set_seen(&w->current, to);
  add_seen(&w->counts.switches);
  ++from->times_left;
  if (BOSK_UNLIKELY(metering())) meter(w, to);
  arm_timer(w);
  context::FloatControl floats;
  if (BOSK_UNLIKELY(to->pinned != nullptr &&
                    to->own != w->kernel.load(std::memory_order_relaxed))) {
    floats = hand_role_over(w, from, to);
  } else {
    const uintptr_t identity = to->thread_pointer != from->thread_pointer ? to->thread_pointer : 0;
    floats = context::annotated_switch(&from->sp, to->sp, identity, to, from);
  }
  after_switch(from);
  return floats;
}

/// Switches out the calling thread; `post` is done after it left its stack (it publishes the thread).
/// The worker goes on with a ready thread, else with a carrier that looks for work.
void block(Thread* me, Post post);
/// The same for a native thread on its own kernel thread: while nothing is to be run on its worker it needs
/// no carrier to wait on.
void block_native(Thread* me, Post post);
/// As block(), and the worker goes on with `next`.
void block_for(Thread* me, Post post, Thread* next);

/// A carrier that ran under another identity, as it was made.
inline Thread* own_thread_of(Thread* carrier) {
  carrier->run_as(carrier->own);
  carrier->own->block->self = carrier;
  return carrier;
}

/// Lets the other ready threads of the worker run first.
void yield(Thread* me);

/// Lets the worker run something else that it has, ready threads or ghosts, if it has any.
void let_worker_go_on(Thread* me);

/// Makes a thread ready that was switched out: on its own worker if it is pinned, else on `near`.
/// Front: before the others of its priority. Wakes a worker where that is needed. Any kernel thread
/// may call this.
void make_ready(Thread* thread, Worker* near, bool front);

/// Stack top of every carrier: looks for work for ever.
[[noreturn]] void carrier_loop(Thread* me);

/// First ready thread of this worker, or null.
inline Thread* pop_ready(Worker* w) {
  if (BOSK_UNLIKELY(gangs_exist())) return pop_ready_of_gangs(w);
  if (w->ready.empty_hint()) return nullptr;
  base::SpinGuard guard(w->ready.lock);
  Entity* first = w->ready.first;
  if (first == nullptr) return nullptr;
  w->ready.remove_locked(first);
  return static_cast<Thread*>(first);
}

/// What to run next when the caller cannot go on: never null.
Thread* next_thread(Worker* w);

/// Sets thread->serve_floor from the bounds of its stack. `grows`: the kernel makes it longer as it is used, as
/// long as the limit allows.
void set_serve_floor(Thread* thread, const char* stack_low, const char* stack_high,
                     bool grows = false);

/// The same for a stack that grows: at the first need.
[[gnu::cold]] bool may_serve_when_grown(Thread* me, uintptr_t frame);

/// True if the calling thread is on its own stack and that has room for a member of any team. Whoever runs other
/// members' or threads' code as a call asks this first.
inline bool may_serve_here(Thread* me) {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  // Unsigned: what lies below the floor is far above the room.
  return BOSK_LIKELY(frame - me->serve_floor < me->serve_room) ||
         (BOSK_UNLIKELY(me->serve_room_if_grown != 0) && may_serve_when_grown(me, frame));
}

// ---- carriers (carriers.cpp)
Thread* take_carrier_from_cache(Worker* w);
/// Null: none free now.
inline Thread* take_carrier(Worker* w) {
  Thread* carrier = w->carriers;
  if (BOSK_UNLIKELY(carrier == nullptr)) return take_carrier_from_cache(w);
  w->carriers = carrier->link;
  --w->carrier_count;
  carrier->pool = w->pool;
  carrier->bubble = nullptr;
  return carrier;
}
constexpr uint32_t kCarrierStock = 64;  ///< a worker keeps at most twice this
void give_carriers_to_cache(Worker* w);
inline void give_carrier(Worker* w, Thread* carrier) {
  carrier->link = w->carriers;
  w->carriers = carrier;
  if (BOSK_UNLIKELY(++w->carrier_count >= 2 * kCarrierStock)) give_carriers_to_cache(w);
}
void request_carriers(uint32_t count);        ///< more from the factory; returns at once
void wait_for_carrier(Worker* w);             ///< returns when there may be one, or something ready
context::Identity* take_identity(Worker* w);  ///< for a ghost; null: none free now
void return_carrier(Thread* carrier);         ///< to the process's cache; any kernel thread
/// All that are in the cache, linked by link, also those that the factory is still to make. Nobody may
/// ask for more meanwhile.
Thread* take_all_carriers();
void set_carrier_stack_size(size_t bytes);
void carriers_forget_after_fork();

// ---- bubbles (bubble_queue.cpp)
/// Lets other workers see the ghosts of a bubble that was opened on this worker.
void publish_bubble(Worker* w, Bubble* bubble);
/// The opener has joined: takes it off the list if it is on top (else a later look drops it).
void retire_bubble(Worker* w, Bubble* bubble);
/// Has a bubble of the worker's list ghosts, and were they opened here? Who joins elsewhere, as a thread
/// that has moved does, leaves its bubble on the list, and others may have taken it up since.
inline bool has_ghosts_of(const Worker* w, const Bubble* bubble) {
  return bubble->ghosts.left() > 0 && bubble->opened_on() == w;
}
Bubble* newest_open_bubble_below(Worker* w, uint32_t count);
/// The innermost bubble opened here that has ghosts to run; null: none.
inline Bubble* newest_open_bubble(Worker* w) {
  const uint32_t count = w->open_count.load(std::memory_order_relaxed);
  if (count == 0) return nullptr;
  Bubble* bubble =
      w->open_list.load(std::memory_order_relaxed)[count - 1].load(std::memory_order_relaxed);
  return BOSK_LIKELY(has_ghosts_of(w, bubble)) ? bubble : newest_open_bubble_below(w, count - 1);
}
/// Another worker's bubble with ghosts that this one may take, by claim_found(), and whether these are at home on
/// other nodes; null: none.
Bubble* find_bubble(Worker* w, Far far, bool* is_far);
/// The same for who takes it now.
Bubble* steal_bubble(Worker* w);
/// Idle workers of the same node look around: there is something for so many with the worker. And so many others go nowhere else for a
/// moment: there will be something for them.
void call_mates(Worker* w, uint32_t count, uint32_t others);
/// The worker has taken so many ghosts or threads of a team of another node (that of `left_node`, which may reach farther), has them on its
/// queue or in its share, or is about to run the only one: the team is its node's from now on, and what runs of it elsewhere follows.
void adopt(Worker* w, Bubble* team, uint64_t left_node, uint32_t taken);
/// A ghost of what newest_open_bubble() found, if it is still there.
Claim claim_opened_here(Worker* w, Bubble* bubble);
/// A ghost of what worth_taking() or steal_bubble() found, if it is still there.
Claim claim_found(Worker* w, Bubble* bubble);
/// claim_next() of a team that many workers claim from. Preemption on or off.
Claim claim_by_way_of_share(Thread* me, Bubble* bubble);
/// For those who run a member of the bubble, or have one to report: the next ghost.
inline Claim claim_next(Thread* me, Bubble* bubble) {
  return BOSK_LIKELY(bubble->share_shift == 0) ? bubble->ghosts.claim(1)
                                               : claim_by_way_of_share(me, bubble);
}
/// Ghosts that the worker can run without taking them from another one.
inline bool has_ghosts(Worker* w) {
  return newest_open_bubble(w) != nullptr || BOSK_UNLIKELY(!w->share.empty());
}
Thread* steal_ready_thread(Worker* w);
/// One of a neighbour that has at least two more of them than the worker; null: none.
Thread* steal_from_longer_queue(Worker* w);
/// Would it find one, and does that wait on another node? A hint.
bool others_have_ready_thread(Worker* w, Far far, bool* is_far);
/// Who is to run the thread next, which `w` has run and that has to wait for its turn: somebody of the node that has taken its team, if
/// nobody there has more to do; else `w`. O(PUs of a node).
Worker* worker_with_team(Worker* w, const Thread* thread);
/// It has ghosts that the worker may take, as far as one can see without taking one.
bool worth_taking(Worker* w, Bubble* bubble);
/// For ghosts that need their own stacks: gives the claimed one to the thread whose stack that is, and
/// goes on there; the calling carrier is free then.
void assign_ghost(Thread* me, Bubble* bubble, uint32_t index);
/// Work was queued that the opener can do while it waits for the join.
void pull_opener(Worker* w, Bubble* bubble);
/// The opener has run what it could: whether helpers came in time decides about the next offers.
inline void judge_offer(Worker* w, const Bubble* bubble, bool helped) {
  if (BOSK_LIKELY(w->offered != bubble)) return;
  constexpr uint32_t kMostPause = 64;
  w->offered = nullptr;
  w->offer_pause_next = helped                             ? 0
                        : w->offer_pause_next < kMostPause ? 2 * w->offer_pause_next + 1
                                                           : w->offer_pause_next;
  w->offer_pause = w->offer_pause_next;
}
/// Adds `finished` members to the bubble's count; the last one wakes the opener.
inline void complete_members(Worker* w, Bubble* bubble, uint32_t finished) {
  if (bubble->pending.finish(finished)) make_ready(bubble->opener, w, true);
}
/// The opener's side: `own` members ended on it since it last told. True: all have; false: there may
/// be work for the opener, and it calls again.
bool join_bubble(Thread* me, Bubble* bubble, uint32_t own);

// ---- on CPUs of their own (apart.cpp)
/// By the creator before, and by each new worker's kernel thread after that, one at a time: they begin on
/// different CPUs while there are any. start_apart() says where it is to go_apart().
void note_creators_cpu(Pool* pool);
base::CpuMask start_apart(Pool* pool);
void go_apart(Worker* w, const base::CpuMask& target);
/// By the creator, until the worker has said in `state` how it went. Polls at first: who sleeps and is woken
/// goes to its waker's CPU easily, and stays there for a while.
void wait_for_start(const std::atomic<uint32_t>& state, bool may_poll);
/// The calling kernel thread, which plays the worker and has the mask `own`, goes to one of the CPUs of `target`, which are some of
/// those; its mask is then what it was. False: the kernel refuses.
bool move_into(Worker* w, const base::CpuMask& target, const base::CpuMask& own);
/// Has somebody given the worker's kernel thread other CPUs than the pool's?
Bound is_bound(const Worker* w);
void wake_sleeper(Worker* target);
/// By a worker that has just been woken.
void part_from_waker(Worker* w);
/// By a worker whose members yield or poll, now and then: not on the CPU of another one like that. The kernel does not part for tens of ms
/// those that give way all the time, and those that poll for each other get on by one of its slices.
void part_from_busy_neighbours(Worker* w);

// ---- idling (idle.cpp)
/// Polls, then sleeps, until the native thread's condition holds (true) or there is something to do
/// for this worker (false). `sleep_at_once`: what is waited for takes longer than the polling.
bool idle_until_work(Worker* w, bool sleep_at_once = false);
/// Tells an idle worker, if there is one, about a bubble (or kLookAround). A bubble that is not offered
/// is found within some microseconds by workers that poll; those that sleep depend on the offer.
void offer_slow(Worker* w, Bubble* bubble);
inline void offer(Worker* w, Bubble* bubble) {
  // relaxed: a worker that goes idle at this moment looks around once more after it has said so; the
  // light barrier pairs with the heavy one before it sleeps.
  base::StdAtomics::light_barrier();
  if (BOSK_UNLIKELY(w->pool->idle_count.load(std::memory_order_relaxed) != 0))
    offer_slow(w, bubble);
}
/// True: it slept.
inline bool wake_worker(Worker* target) {
  if (BOSK_LIKELY(!target->spot.needs_wake())) return false;
  wake_sleeper(target);
  return true;
}
/// Makes the other worker look around, if it idles.
bool call_if_idle(const Worker* w, Worker* other);
void wake_all_parked(Pool* pool);

// ---- barrier of teams that have more members than native threads (barrier.cpp)
/// Called by a member that found its own tasks done. Returns true when the barrier opened, false when
/// it did not but `bubble->queued_work` says that there is work for it (it is then counted as arrived:
/// call again with again = true), or the bubble was cancelled and cancellable is set.
bool bubble_barrier(Thread* me, Bubble* bubble, uint32_t epoch, bool again, bool cancellable);
bool poll_groups(Worker* w);
bool a_group_is_open(Worker* w);
void report_arrivals(Worker* w);
void free_groups(Worker* w);  ///< none is in use
/// Before the worker runs a member of `bubble` (null: nobody's): nobody else's work must hold up a
/// barrier, so arrivals stay unreported only while members of the same team run.
inline void report_before(Worker* w, const Bubble* bubble) {
  if (BOSK_LIKELY(w->unreported_groups == 0)) return;
  const BarrierGroup* newest = w->groups;
  if (w->unreported_groups == 1 && newest->unreported != 0 && newest->bubble == bubble) return;
  report_arrivals(w);
}
Thread* take_waiting_member(Worker* w);
/// Of this team; null: nobody waits here.
Thread* take_waiting_member_of(Worker* w, const Bubble* bubble);

// ---- native threads and flat teams (native.cpp)
/// Waits on the calling native or initial thread until condition(me); its worker helps elsewhere
/// meanwhile, within `root` (null: anywhere in the pool).
void native_wait(Thread* me, bool (*condition)(Thread*), Bubble* root);
/// What a worker's own thread does for its life; returns when the pool ends.
void native_loop(Thread* me);
/// `sequence` is the bubble's. True: the worker slept.
bool post_job(Worker* target, Bubble* bubble, uint64_t sequence, const NativeJob& what);

// ---- pools (pool.cpp)
/// The record of the calling pthread, made if it has none. Preemption state is untouched.
Thread* attach_calling_thread();
/// Sees to it that at least `count` workers exist (or as many as the system gives). Returns how many.
/// Called with preemption on.
uint32_t ensure_workers(Pool* pool, uint32_t count);
/// The same for a level-1 region, whose opener counts as inside of it already; ends what a pause has begun.
/// `all_native`: although that is more than there are CPUs.
uint32_t ensure_usable(Pool* pool, uint32_t count, bool all_native);
/// For regions that `me` opens inside of others; the thread stays where it is.
Pool* make_sub_pool(Thread* me);
void free_pool(Pool* pool);
/// By the pool's thread: what its workers, none of which exists yet, are to inherit from it.
void note_inheritance(Pool* pool, const Thread* me);
/// By a new worker's own kernel thread.
void take_cpus(const base::CpuMask& wanted);
void forget_pools_after_fork();
void address_wait_forget_after_fork();
Pool* first_pool();
/// Some thread of the process has called the runtime, and lives.
bool has_initial_threads();

/// A kernel thread without a worker's role (it was promoted) gets one back. Returns with preemption
/// off and a role.
void reacquire_role(Thread* me);

/// The calling thread's worker, with preemption switched off.
inline Worker* enter(Thread* me) {
  context::preempt_disable();
  if (BOSK_UNLIKELY(me->worker == nullptr)) reacquire_role(me);
  return me->worker;
}
inline void leave([[maybe_unused]] Thread* me) { context::preempt_enable(); }

/// is_left_to_adopter() on the opener's worker. With preemption on.
inline bool is_left_to_adopter(Thread* opener, const Bubble* bubble) {
  // Coming out of a call of the kernel it may have no worker just now.
  Worker* w = enter(opener);
  const bool is_left = is_left_to_adopter(w, bubble);
  leave(opener);
  return is_left;
}

}  // namespace bosk::sched
