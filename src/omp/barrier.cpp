// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Barriers of teams, as task scheduling points.
//
// Every member first sees its own tasks end, then arrives, then runs other members' tasks while it
// waits; so when all have arrived, all tasks are complete and no count of them is needed.
#include "omp/region.h"
#include "sched/barrier_group.h"
#include "sched/doing.h"
#include "sched/kernel_threads.h"
#include "sched/preemption.h"
#include "sched/task_calls.h"

namespace bosk::omp {
namespace {

/// Up to this size every member watches all others: one cache-line transfer, no tree.
constexpr uint32_t kAllToAll = 4;

struct FlatBarrier {
  Team* team;
  uint64_t target;
  bool cancellable;
};

/// It has arrived at the barrier, or left a cancelled region: then it counts as arrived at all of them.
bool has_arrived(const sched::Worker* w, const Team* team, uint64_t target) {
  // acquire: what the others wrote before the barrier is visible after it.
  return BOSK_LIKELY(w->flat_arrived.load(std::memory_order_acquire) >= target) ||
         w->flat_ended.load(std::memory_order_acquire) >= team->sequence;
}

bool all_have_arrived(sched::Thread* me, const Team* team, uint64_t target) {
  for (uint32_t i = 0; i < team->size; ++i)
    if (!has_arrived(me->pool->worker(i), team, target)) return false;
  return true;
}

bool children_have_arrived(sched::Thread* me, const Team* team, uint32_t parent, uint64_t target) {
  const uint32_t first = parent * kTreeArity + 1;
  for (uint32_t child = first; child < first + kTreeArity && child < team->size; ++child)
    if (!has_arrived(me->pool->worker(child), team, target)) return false;
  return true;
}

bool subtree_has_arrived(sched::Thread* me, const Team* team, uint64_t target) {
  return children_have_arrived(me, team, me->member->index, target);
}

/// The caller has just arrived; whoever waits for it and `others` sleeps, where members are more than processors, and need not wake
/// for each of them: the last one wakes it. The fence: of those that arrive at the same time one sees all.
template <typename Others>
bool is_to_wake(sched::Thread* me, const Team* team, Others others) {
  if (BOSK_LIKELY(team->size <= me->pool->worker_limit)) return true;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return others();
}

bool released(sched::Thread* me, uint64_t target) {
  return me->pinned->flat_release.load(std::memory_order_acquire) >= target;
}

FlatBarrier& waiting(sched::Thread* me) { return *static_cast<FlatBarrier*>(me->wait_state); }

/// A native thread goes on waiting unless one of these holds; then it looks which it was.
bool something_for_the_team(const FlatBarrier& barrier) {
  return barrier.team->queued_work.load(std::memory_order_relaxed) != 0 ||
         (barrier.cancellable && barrier.team->cancelled.load(std::memory_order_acquire) != 0);
}

bool due_all(sched::Thread* me) {
  const FlatBarrier& barrier = waiting(me);
  return all_have_arrived(me, barrier.team, barrier.target) || something_for_the_team(barrier);
}
bool due_subtree(sched::Thread* me) {
  const FlatBarrier& barrier = waiting(me);
  return subtree_has_arrived(me, barrier.team, barrier.target) || something_for_the_team(barrier);
}
bool due_release(sched::Thread* me) {
  const FlatBarrier& barrier = waiting(me);
  return released(me, barrier.target) || something_for_the_team(barrier);
}

/// Waits until done(), running the team's tasks meanwhile. True: cancelled.
template <typename Done>
bool wait_with_tasks(sched::Thread* me, FlatBarrier& barrier, bool (*due)(sched::Thread*),
                     Done done) {
  while (!done()) {
    if (barrier.cancellable && barrier.team->cancelled.load(std::memory_order_acquire) != 0)
      return true;
    if (barrier.team->queued_work.load(std::memory_order_relaxed) != 0 &&
        run_one_team_task(me, barrier.team, true))
      continue;
    me->wait_state = &barrier;
    sched::native_wait(me, due, barrier.team);
  }
  return false;
}

bool flat_barrier(sched::Thread* me, Team* team, bool cancellable) {
  FlatBarrier barrier{team, team->barriers_before + ++me->member->barriers, cancellable};
  const uint64_t target = barrier.target;
  sched::Worker* own = me->pinned;
  if (team->size <= kAllToAll) {
    own->flat_arrived.store(target, std::memory_order_release);
    const bool wakes = is_to_wake(me, team, [&] { return all_have_arrived(me, team, target); });
    for (uint32_t i = 0; wakes && i < team->size; ++i) {
      sched::Worker* other = me->pool->worker(i);
      if (other != own) sched::wake_worker(other);
    }
    return wait_with_tasks(me, barrier, due_all,
                           [&] { return all_have_arrived(me, team, target); });
  }
  if (wait_with_tasks(me, barrier, due_subtree,
                      [&] { return subtree_has_arrived(me, team, target); }))
    return true;
  own->flat_arrived.store(target, std::memory_order_release);
  const uint32_t index = me->member->index;
  if (index != 0) {
    const uint32_t parent = (index - 1) / kTreeArity;
    if (is_to_wake(me, team, [&] { return children_have_arrived(me, team, parent, target); }))
      sched::wake_worker(me->pool->worker(parent));
    if (wait_with_tasks(me, barrier, due_release, [&] { return released(me, target); }))
      return true;
  }
  const uint32_t first = index * kTreeArity + 1;
  for (uint32_t child = first; child < first + kTreeArity && child < team->size; ++child) {
    sched::Worker* w = me->pool->worker(child);
    w->flat_release.store(target, std::memory_order_release);
    sched::wake_worker(w);
  }
  return false;
}

bool multiplexed_barrier(sched::Thread* me, Team* team, bool cancellable) {
  ++me->member->barriers;
  // Stable until this member has arrived.
  const uint32_t epoch = team->meeting.epoch();
  sched::enter(me);
  bool open = BOSK_LIKELY(sched::wait_behind_team_mate(me, team, epoch))
                  ? sched::may_go_on(team, epoch, cancellable)
                  : sched::bubble_barrier(me, team, epoch, false, cancellable);
  while (!open) {
    sched::leave(me);
    while (!team->meeting.is_open(epoch) && run_one_team_task(me, team, true)) {
    }
    sched::enter(me);
    open = sched::bubble_barrier(me, team, epoch, true, cancellable);
  }
  sched::leave(me);
  return cancellable && team->cancelled.load(std::memory_order_acquire) != 0;
}

[[gnu::cold, gnu::noinline]] bool meet_watched(sched::Thread* me, Team* team, bool cancellable) {
  const sched::DoesMeanwhile waits(me, sched::Does::kBarrier);
  return team->flat ? flat_barrier(me, team, cancellable)
                    : multiplexed_barrier(me, team, cancellable);
}

bool meet(bool cancellable) {
  sched::Thread* me = current_thread();
  ImplicitTask* member = me->member;
  Team* team = member->team;
  if (BOSK_UNLIKELY(member->children.load(std::memory_order_relaxed) != 0))
    drain_member_tasks(me, member);
  if (team->size == 1) {
    ++member->barriers;
    return cancellable && team->cancelled.load(std::memory_order_relaxed) != 0;
  }
  if (BOSK_UNLIKELY(watching())) return meet_watched(me, team, cancellable);
  return team->flat ? flat_barrier(me, team, cancellable)
                    : multiplexed_barrier(me, team, cancellable);
}

}  // namespace

void barrier() { meet(false); }

bool barrier_cancellable() { return meet(true); }

void cancel_parallel(Team* team) {
  team->cancelled.store(1, std::memory_order_seq_cst);
  if (team->size > 1) sched::wake_all_parked(team->opened_on()->pool);
}

void note_team_work(Team* team) {
  sched::Thread* me = current_thread();
  // Asked before anybody can come to help, and needs a timer for it.
  const bool multiplexed = sched::can_multiplex(me->pool);
  if (team->size > 1) team->helpers.open();
  // seq_cst: a member that is about to sleep has said so before it looked at this flag last.
  team->queued_work.store(1, std::memory_order_seq_cst);
  sched::Worker* w = sched::enter(me);
  // Not the caller's pool: omp_fulfill_event may be called by any thread.
  if (team->opened_on() != nullptr) sched::call_for_tasks(team->opened_on()->pool, team, 1);
  if (BOSK_LIKELY(multiplexed)) {
    // The task that runs next here may spin until this one has run. Where every member has its own kernel
    // thread another of them takes it; and of more of these than processors, each with a tick whether it
    // runs or not, ticks would be all that a thousand get done.
    if (!team->flat || team->size <= me->pool->worker_limit) sched::arm_timer(w);
    if (!team->flat && team->size > 1) sched::pull_opener(w, team);
  }
  sched::leave(me);
}

}  // namespace bosk::omp
