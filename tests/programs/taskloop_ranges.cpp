// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Taskloops of thousands of small tasks, which need not each be queued: every one is a task all the same,
// with copies, ICVs, children and dependences of its own, and may be cancelled.
#include "check.h"

#include <omp.h>

#include <atomic>
#include <vector>

namespace {

constexpr int kTasks = 6000;

std::atomic<long> made{0}, gone{0};

struct Counted {
  long value = 0;
  explicit Counted(long v) : value(v) { ++made; }
  Counted(const Counted& other) : value(other.value) { ++made; }
  ~Counted() { ++gone; }
};

void copies() {
  made = gone = 0;
  {
    Counted object(7);
    char block[200];
    memset(block, 5, sizeof block);
    int odd[3] = {1, 2, 3};
    std::atomic<long> sum{0};
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(1) firstprivate(object, block, odd)
    for (int i = 0; i < kTasks; ++i) {
      CHECK(object.value == 7, "task %d has a copy that another one changed: %ld", i, object.value);
      CHECK(block[0] == 5 && block[199] == 5 && odd[0] == 1 && odd[2] == 3, "task %d: plain copies",
            i);
      object.value += i + 1;
      block[0] = block[199] = 0;
      odd[0] = odd[2] = 0;
      sum += i;
    }
    CHECK(sum == long{kTasks} * (kTasks - 1) / 2, "copies: the sum is %ld", sum.load());
    CHECK(object.value == 7, "the original was changed");
  }
  CHECK(made == gone && made >= kTasks, "%ld objects made, %ld destroyed", made.load(),
        gone.load());
}

void control_variables() {
#pragma omp parallel
#pragma omp single
  {
    omp_set_num_threads(3);
    // One iteration each: none may see what another one has set.
#pragma omp taskloop grainsize(1)
    for (int i = 0; i < kTasks; ++i) {
      CHECK(omp_get_max_threads() == 3, "task %d has %d threads", i, omp_get_max_threads());
      omp_set_num_threads(4 + i % 5);
    }
    CHECK(omp_get_max_threads() == 3, "a task changed its creator's threads");
  }
}

void children() {
  std::atomic<long> ran{0}, grand{0};
  std::vector<int> order(kTasks, 0);
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskloop grainsize(1)
    for (int i = 0; i < kTasks; ++i) {
      if (i % 3 == 0) {
        // Left behind: the taskloop waits for them.
#pragma omp task
        {
          ++ran;
#pragma omp task
          ++grand;
        }
      } else if (i % 3 == 1) {
        int mine = 0;
#pragma omp task shared(mine)
        mine = i;
#pragma omp taskwait
        CHECK(mine == i, "task %d did not wait for its child", i);
      } else {
        int step = 0;
#pragma omp task shared(step) depend(out : step)
        step = 1;
#pragma omp task shared(step) depend(inout : step)
        step = step == 1 ? 2 : -1;
#pragma omp taskwait
        order[i] = step;
      }
    }
    CHECK(ran == kTasks / 3 && grand == kTasks / 3, "%ld and %ld of %d children", ran.load(),
          grand.load(), kTasks / 3);
    for (int i = 2; i < kTasks; i += 3) CHECK(order[i] == 2, "task %d: dependences", i);
  }
}

void reductions() {
  long sum = 5;
  int last = -1;
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(1) reduction(+ : sum) lastprivate(last)
  for (int i = 0; i < kTasks; ++i) {
    sum += i;
    last = i;
  }
  CHECK(sum == 5 + long{kTasks} * (kTasks - 1) / 2, "the reduction is %ld", sum);
  CHECK(last == kTasks - 1, "lastprivate is %d", last);
  std::atomic<long> inner{0};
#pragma omp parallel
#pragma omp single
#pragma omp taskloop num_tasks(700)
  for (int i = 0; i < 700; ++i) {
#pragma omp taskloop grainsize(1)
    for (int j = 0; j < (i % 100 == 0 ? 2000 : 3); ++j) ++inner;
  }
  CHECK(inner == 7 * 2000 + 693 * 3, "%ld inner iterations", inner.load());
}

void kinds() {
  std::atomic<long> count{0};
#pragma omp parallel
#pragma omp single
  {
    const int me = omp_get_thread_num();
#pragma omp taskloop grainsize(1) if (0)
    for (int i = 0; i < kTasks; ++i) {
      CHECK(omp_get_thread_num() == me, "an undeferred task ran elsewhere");
      ++count;
    }
#pragma omp taskloop grainsize(1) final(1)
    for (int i = 0; i < kTasks; ++i) {
      CHECK(omp_in_final(), "task %d is not final", i);
#pragma omp task
      {
        CHECK(omp_in_final(), "the child of a final task is not");
        ++count;
      }
    }
#pragma omp taskloop grainsize(1) nogroup
    for (int i = 0; i < kTasks; ++i) ++count;
#pragma omp taskwait
    CHECK(count == 3 * kTasks, "%ld of %d", count.load(), 3 * kTasks);
  }
#pragma omp taskloop grainsize(1) shared(count)
  for (int i = 0; i < kTasks; ++i) ++count;
  CHECK(count == 4 * kTasks, "outside of regions: %ld of %d", count.load(), 4 * kTasks);
}

// `discards`: what a cancelled loop has not begun it drops, which the standard allows and bosk does.
void cancellation(bool discards) {
  std::atomic<long> ran{0}, after{0};
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskgroup
    {
#pragma omp taskloop grainsize(1)
      for (int i = 0; i < kTasks; ++i) {
        if (++ran == 100) {
#pragma omp cancel taskgroup
        }
      }
    }
#pragma omp taskloop grainsize(1)
    for (int i = 0; i < kTasks; ++i) ++after;
  }
  if (omp_get_cancellation())
    CHECK(ran >= 100 && ran <= (discards ? kTasks - 1 : kTasks),
          "%ld tasks ran of a cancelled loop", ran.load());
  else
    CHECK(ran == kTasks, "%ld tasks ran", ran.load());
  CHECK(after == kTasks, "%ld tasks ran of the loop after it", after.load());
}

}  // namespace

int main(int argc, char**) {
  for (int round = 0; round < 5; ++round) {
    copies();
    control_variables();
    children();
    reductions();
    kinds();
    cancellation(argc > 1);
  }
  puts("ok");
  return 0;
}
