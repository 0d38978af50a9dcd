// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waiting for tasks under the checker: the count of children in its three states, and the signals
// between those who queue tasks and those who look for them.
#include <array>
#include <memory>

#include "checker/expect.h"
#include "omp/explicit_task_count.h"
#include "omp/task_queue_signals.h"
#include "sched/task_deque.h"

namespace {

using enum std::memory_order;
using namespace bosk::omp;
using A = model::ModelAtomics;

constexpr int kQueue = 7;  // the waiter's number

/// What the owner sleeps on; poke() as in omp/task_queue.cpp.
struct News {
  A::atomic<std::uint32_t> count;

  void poke() {
    count.fetch_add(1, seq_cst);
    A::futex_wake(&count, 1);
  }
  void sleep(std::uint32_t seen) {
    if (count.load(acquire) == seen) A::futex_wait(&count, seen);
  }
};

// ---- counts -------------------------------------------------------------------------------------

struct Family {
  A::atomic<std::uint64_t> mine;
  A::atomic<std::uint64_t> others;
  A::atomic<std::uint32_t> waiter;
  News news;
  std::array<A::plain<int>, 3> wrote;
  A::plain<int> parent_wrote;
  A::plain<int> ended;
};

/// A thread that ends a child of somebody else's.
void end_child(Family& f, int child, std::uint64_t what) {
  f.wrote[child] = 1;
  const auto added = add_for_owner(f.others, f.waiter, what);
  if (added.others == 0) {
    // The parent had finished: all it and its children did is visible here.
    MODEL_ASSERT(f.parent_wrote == 1);
    f.ended = f.ended + 1;
  } else if (added.to_wake != 0) {
    MODEL_ASSERT(added.to_wake == kQueue);
    f.news.poke();
  }
}

void wait_for_children(Family& f, std::uint64_t bias, int children) {
  const auto part = [bias](std::uint64_t left) {
    return bias == kWaitsForAll ? left : finished_half(left);
  };
  while (part(collect(f.mine, f.others)) != 0) {
    const std::uint32_t seen = f.news.count.load(acquire);
    f.waiter.store(kQueue, relaxed);
    const std::uint64_t others = start_waiting(f.mine, f.others, bias);
    if (part(bias - others) != 0) f.news.sleep(seen);
    stop_waiting(f.mine, f.others, bias);
  }
  for (int i = 0; i < children; ++i) MODEL_ASSERT(f.wrote[i] == 1);
}

std::function<void()> waits(std::uint64_t bias, int children, bool in_two_steps) {
  return [=] {
    auto f = std::make_shared<Family>();
    own_add(f->mine, children * kWholeChild);
    model::spawn([=] { wait_for_children(*f, bias, children); });
    for (int i = 0; i < children; ++i)
      model::spawn([=] {
        if (in_two_steps && i == 0) {
          end_child(*f, i, kFinishedChild);
          end_child(*f, i, kEndedDescendants);
        } else {
          end_child(*f, i, kWholeChild);
        }
      });
  };
}

std::function<void()> finishes_first(int children) {
  return [=] {
    auto f = std::make_shared<Family>();
    own_add(f->mine, children * kWholeChild);
    model::spawn([=] {
      f->parent_wrote = 1;
      const std::uint64_t left = collect(f->mine, f->others);
      if (left == 0 || finish_before_children(f->others, left)) {
        for (int i = 0; i < children; ++i) MODEL_ASSERT(f->wrote[i] == 1);
        f->ended = f->ended + 1;
      }
    });
    for (int i = 0; i < children; ++i) model::spawn([=] { end_child(*f, i, kWholeChild); });
    model::at_end([=] { MODEL_ASSERT(f->ended == 1); });
  };
}

TEST(ChildCount, TaskwaitIsWoken) {
  model::expect_proved({}, waits(kWaitsForFinished, 1, false));
  model::expect_big_proved({}, waits(kWaitsForFinished, 2, false));
}
TEST(ChildCount, BarrierIsWoken) {
  model::expect_proved({}, waits(kWaitsForAll, 1, true));
  model::expect_big_proved({}, waits(kWaitsForAll, 2, false));
}
TEST(ChildCount, WeakExchangeThatFailsForNoReason) {
  model::expect_big_proved({.spurious_cas = 1}, waits(kWaitsForAll, 1, true));
}
TEST(ChildCount, OneEndsTheFinishedParent) {
  model::expect_proved({}, finishes_first(1));
  model::expect_big_proved({}, finishes_first(2));
}
TEST(ChildCountPlanted, EveryWeakenedOrderIsCaught) {
  // collect's acquire; start_waiting's release; stop_waiting's acquire; finish's acq_rel (three ways);
  // add's acquire load, release and acquire on failure.
  model::expect_every_order_matters(
      {}, {waits(kWaitsForFinished, 1, false), waits(kWaitsForAll, 2, false), finishes_first(2)},
      "explicit_task_count.h", 9);
}

// ---- signals ------------------------------------------------------------------------------------

struct Task {
  A::plain<int> taken{0};
};
using Deque = bosk::sched::TaskDeque<A, Task>;

struct Team {
  std::array<Task, 2> tasks;
  Deque deque;
  A::atomic<std::uint32_t> work;  // queued_work
};

bool any(Task*) { return true; }

bool take(Team& t) {
  Task* task = t.deque.steal_if(any);
  if (task == nullptr) return false;
  task->taken = task->taken + 1;
  return true;
}

/// A member in a barrier that looks for tasks while the flag is set, and sleeps while it is not.
void searcher(Team& t, int tasks) {
  while (tasks > 0) {
    if (t.work.load(relaxed) == 0) {
      A::futex_wait(&t.work, 0);
      continue;
    }
    if (take(t)) {
      --tasks;
      continue;
    }
    clear_work_flag<A>(t.work);
    if (!take(t)) continue;
    --tasks;
    t.work.store(1, seq_cst);
    A::futex_wake(&t.work, 1);
  }
}

std::function<void()> queueing(int tasks, bool set_at_first) {
  return [=] {
    auto t = std::make_shared<Team>();
    if (set_at_first) t->work.store(1, relaxed);
    model::spawn([=] {
      for (int i = 0; i < tasks; ++i) {
        t->deque.push(&t->tasks[i], 2);
        if (must_set_work_flag<A>(t->work)) {
          t->work.store(1, seq_cst);
          A::futex_wake(&t->work, 1);
        }
      }
    });
    model::spawn([=] { searcher(*t, tasks); });
    model::at_end([=] {
      for (int i = 0; i < tasks; ++i) MODEL_ASSERT(t->tasks[i].taken == 1);
    });
  };
}

/// A task becomes ready that only the parent, which waits, may run: its releaser goes away.
std::function<void()> releasing() {
  return [] {
    struct State : Team, Family {};
    auto s = std::make_shared<State>();
    own_add(s->mine, kWholeChild);
    model::spawn([=] {
      s->deque.push(&s->tasks[0], 2);
      after_queueing<A>();
      if (owner_waits(s->others.load(acquire)) && s->waiter.load(relaxed) != 0) s->news.poke();
    });
    model::spawn([=] {
      for (;;) {
        if (take(*s)) break;
        const std::uint32_t seen = s->news.count.load(acquire);
        s->waiter.store(kQueue, relaxed);
        start_waiting(s->mine, s->others, kWaitsForFinished);
        before_last_look<A>();
        const bool found = take(*s);
        if (!found) s->news.sleep(seen);
        stop_waiting(s->mine, s->others, kWaitsForFinished);
        if (found) break;
      }
    });
    model::at_end([=] { MODEL_ASSERT(s->tasks[0].taken == 1); });
  };
}

TEST(TaskSignals, NoQueuedTaskIsForgotten) {
  model::expect_proved({}, queueing(1, true));
  model::expect_proved({}, queueing(1, false));
  model::expect_big_proved({}, queueing(2, true));
}
TEST(TaskSignals, AWaitingParentHearsOfAReleasedChild) { model::expect_proved({}, releasing()); }

TEST(TaskSignalsPlanted, EveryFenceIsNeeded) {
  // Four barriers; the flag's accesses are relaxed.
  model::expect_every_order_matters({}, {queueing(1, true), releasing()}, "task_queue_signals.h",
                                    4);
}

}  // namespace
