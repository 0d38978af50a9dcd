// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waits at which a thread runs tasks: one loop, and what it is that each wait waits for.
//
// A thread that finds nothing to run makes its wait known (arm), looks once more, and sleeps on its
// queue's `news`. Whoever then ends the wait, or queues something that only this thread may run,
// adds to `news`. No lost wake-up: `news` is read before the wait is made known, and after it was,
// a full fence on all processors (heavy) stands before the last look; so somebody who queued a task
// either sees the armed wait or was seen.
#include "base/atomics_policy.h"
#include "omp/explicit_task.h"
#include "omp/taskgroup.h"
#include "sched/address_wait.h"
#include "sched/doing.h"
#include "sched/scheduler.h"

namespace bosk::omp {
namespace {

/// After the k-th look in vain, the wait is polled 2^k times, but no more than the second figure: some 10
/// us in all, about what it takes to fall asleep and be woken. Looks take lines away from those who work.
constexpr int kLooksBeforeSleep = 10;
constexpr int kMostPolls = 128;

/// Until finished children of `task`, or all its descendants, are gone.
struct ChildrenWait {
  Task* task;
  uint64_t bias;  ///< kWaitsForFinished or kWaitsForAll

  uint64_t part(uint64_t left) const { return bias == kWaitsForAll ? left : finished_half(left); }
  bool done() { return part(collect(task->children, task->completed)) == 0; }
  bool arm(MemberQueue* queue) {
    task->waiter.store(queue->number, std::memory_order_relaxed);
    const uint64_t others = start_waiting(task->children, task->completed, bias);
    return part(bias - others) != 0;
  }
  void disarm() { stop_waiting(task->children, task->completed, bias); }
};

struct GroupWait {
  TaskGroup* group;

  bool done() { return collect(group->mine, group->others) == 0; }
  bool arm(MemberQueue* queue) {
    group->waiter.store(queue, std::memory_order_relaxed);
    return start_waiting(group->mine, group->others, kWaitsForAll) != kWaitsForAll;
  }
  void disarm() { stop_waiting(group->mine, group->others, kWaitsForAll); }
};

struct NodeWait {
  DependenceNode* node;

  // acquire pairs with the predecessors' ends. Who brings it to zero has read `waiter` before.
  bool done() { return node->unmet.load(std::memory_order_acquire) == 0; }
  bool arm(MemberQueue*) { return !done(); }
  void disarm() {}
};

struct EventWait {
  TaskExtras* extras;

  bool done() { return (extras->event.load(std::memory_order_acquire) & kEventFulfilled) != 0; }
  bool arm(MemberQueue* queue) {
    extras->waiter.store(queue->number, std::memory_order_relaxed);
    // release: with the bit comes the queue.
    return (extras->event.fetch_or(kCreatorWaits, std::memory_order_acq_rel) & kEventFulfilled) ==
           0;
  }
  void disarm() {}
};

/// Not where others could run on this worker, nor where nobody else runs.
bool looking_again_can_help(const sched::Thread* me) {
  return me->pool != nullptr && me->worker != nullptr && me->worker->ready.empty_hint() &&
         me->pool->worker_count.load(std::memory_order_relaxed) > 1;
}

/// Runs eligible tasks until wait.done(). `any`: the thread is in a barrier, where it may run
/// whatever its team has.
template <class Wait>
void run_tasks_until_done(sched::Thread* me, MemberQueue* queue, Wait wait,
                          const Eligible& eligible) {
  Team* team = me->member->team;
  Task* task = me->task;
  const bool any = eligible.ancestor == nullptr;
  int looks = 0;
  const sched::DoesMeanwhile waits(me, sched::Does::kWaiting);
  const auto run = [&](ExplicitTask* found) {
    const sched::DoesMeanwhile computes(me, sched::Does::kComputing);
    run_task(me, queue, found, task, any);
  };
  while (!wait.done()) {
    if (ExplicitTask* found = take_task(me, team, queue, eligible)) {
      run(found);
      looks = 0;
      continue;
    }
    if (++looks < kLooksBeforeSleep && looking_again_can_help(me)) {
      for (int polls = 1 << looks < kMostPolls ? 1 << looks : kMostPolls; polls > 0; --polls) {
        base::cpu_pause();
        if (wait.done()) break;
      }
      continue;
    }
    looks = 0;
    const uint32_t news = queue->news.load(std::memory_order_acquire);
    ExplicitTask* found = nullptr;
    if (wait.arm(queue)) {
      // With queues full of tasks that this thread may not run, every new one of them would wake it
      // in vain; it then hears of what concerns its wait only.
      const bool sleeper = any || !has_queued_tasks(team);
      if (sleeper) add_sleeper(team, queue);
      before_last_look<base::StdAtomics>();
      found = take_task(me, team, queue, eligible);
      if (found == nullptr) sched::wait_on(queue->news, news);
      if (sleeper) remove_sleeper(team, queue);
    }
    wait.disarm();
    if (found != nullptr) run(found);
  }
}

/// What tasks that were run in a wait left behind in this queue. Their creators have ended, so the
/// thread that waits for them (for a taskgroup) may be any; here it could not reach them while this
/// thread is away in the program's code.
void hand_on_orphans(MemberQueue* queue, uint32_t depth) {
  if (BOSK_LIKELY(!queue->may_hold_orphans)) return;
  queue->may_hold_orphans = false;
  const auto is_orphan = [depth](const ExplicitTask* task) {
    return task->depth.load(std::memory_order_relaxed) > depth + 1;
  };
  while (ExplicitTask* task = queue->deque.pop_if(is_orphan)) {
    push_shared(task->team, task);
    tell_team(task->team);
  }
}

void forget_ended_dependences(MemberQueue* queue, Task* task) {
  if (BOSK_UNLIKELY(task->dependences != nullptr && !task->dependences->empty()) &&
      own_count(task->children) == 0)
    task->dependences->clear(queue);
}

}  // namespace

void taskwait(sched::Thread* me) {
  Task* task = me->task;
  MemberQueue* queue = queue_of(me->member);
  const uint32_t depth = depth_of(task);
  if (!run_own_children(me, queue))
    run_tasks_until_done(me, queue, ChildrenWait{task, kWaitsForFinished}, {task, depth, nullptr});
  hand_on_orphans(queue, depth);
  forget_ended_dependences(queue, task);
}

void wait_for_group(sched::Thread* me, TaskGroup* group) {
  if (GroupWait{group}.done()) return;
  Task* task = me->task;
  MemberQueue* queue = queue_of(me->member);
  const uint32_t depth = depth_of(task);
  // Children from before the taskgroup may run on after its end, unless one in it depends on them.
  TaskGroup* left_out = group->waits_for_earlier ? nullptr : group->outer;
  run_tasks_until_done(me, queue, GroupWait{group}, {task, depth, left_out});
  hand_on_orphans(queue, depth);
}

void wait_for_node(sched::Thread* me, DependenceNode* node) {
  Task* task = me->task;
  MemberQueue* queue = queue_of(me->member);
  run_tasks_until_done(me, queue, NodeWait{node}, {task, depth_of(task), nullptr});
  free_probe(queue, node);
}

void wait_for_dependences(void** depend) {
  sched::Thread* me = current_thread();
  Task* task = me->task;
  if (task->dependences == nullptr) return;
  if (DependenceNode* node = task->dependences->probe(queue_of(me->member), depend))
    wait_for_node(me, node);
}

void wait_for_event(sched::Thread* me, ExplicitTask* detached) {
  Task* task = me->task;
  run_tasks_until_done(me, queue_of(me->member), EventWait{detached->extras()},
                       {task, depth_of(task), nullptr});
}

bool run_one_descendant(sched::Thread* me) {
  Task* task = me->task;
  MemberQueue* queue = queue_of(me->member);
  const Eligible eligible{task, depth_of(task), nullptr};
  ExplicitTask* found = take_task(me, task->team, queue, eligible);
  if (found == nullptr) return false;
  run_task(me, queue, found, task, false);
  return true;
}

void drain_member_tasks(sched::Thread* me, ImplicitTask* member) {
  MemberQueue* queue = queue_of(member);
  run_tasks_until_done(me, queue, ChildrenWait{member, kWaitsForAll}, {});
  forget_ended_dependences(queue, member);
}

}  // namespace bosk::omp
