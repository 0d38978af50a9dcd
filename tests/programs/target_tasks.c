// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Target constructs as tasks: nowait, depend, and who waits for them. Runs in the main thread alone, in a
// region, and in a task. Mode: all, cancel, barrier.
#include "check.h"

#include <omp.h>

#define EQUAL(found, expected)                                                      \
  do {                                                                              \
    const long found_ = (long)(found), expected_ = (long)(expected);                \
    CHECK(found_ == expected_, "%s is %ld and not %ld", #found, found_, expected_); \
  } while (0)

static void work(int amount) {
  volatile unsigned spin = 0;  // unsigned: it overflows
  for (int i = 0; i < amount; ++i) spin = spin + (unsigned)i;
}

static void deferred(void) {
  int sum = 0;
  for (int i = 0; i < 40; ++i) {
    int block[10];
    for (int k = 0; k < 10; ++k) block[k] = i;
    // Both are changed at once, and gone when it may run.
#pragma omp target nowait firstprivate(i, block) map(tofrom : sum)
    {
      int wrong = 0;
      for (int k = 0; k < 10; ++k) wrong += block[k] != i;
      CHECK(wrong == 0, "target task %d: %d elements are others", i, wrong);
      CHECK(omp_get_level() == 0 && omp_get_num_threads() == 1, "level %d", omp_get_level());
#pragma omp atomic
      sum += i;
    }
    memset(block, -1, sizeof block);
  }
#pragma omp taskwait
  EQUAL(sum, 780);

  sum = 0;
#pragma omp taskgroup
  {
    for (int i = 0; i < 10; ++i) {
#pragma omp task shared(sum)
      {
        // Its own children are none of its creator's.
#pragma omp target nowait map(tofrom : sum)
        {
          work(500);
#pragma omp atomic
          sum += 1;
        }
      }
    }
  }
  EQUAL(sum, 10);
}

/// A chain through tasks of all kinds; each finds what the one before left.
static void chain(int length) {
  int value = 0;
  for (int i = 0; i < length; i += 6) {
#pragma omp task depend(inout : value) shared(value) firstprivate(i)
    {
      CHECK(value == i, "task %d finds %d", i, value);
      work(300);
      value = i + 1;
    }
#pragma omp target nowait depend(inout : value) map(tofrom : value) firstprivate(i)
    {
      CHECK(value == i + 1, "target %d finds %d", i, value);
      work(300);
      value = i + 2;
    }
#pragma omp target update to(value) nowait depend(inout : value)
#pragma omp target enter data map(to : value) nowait depend(inout : value)
#pragma omp task depend(inout : value) shared(value) firstprivate(i)
    {
      CHECK(value == i + 2, "task after update %d finds %d", i, value);
      work(300);
      value = i + 3;
    }
#pragma omp target exit data map(from : value) depend(inout : value)
    // That one was waited for, and so were those before it.
    EQUAL(value, i + 3);
#pragma omp task depend(out : value) shared(value) firstprivate(i)
    {
      work(1000);
      value = i + 4;
    }
    const int expected = i + 4;
#pragma omp target depend(inout : value) map(tofrom : value)
    {
      CHECK(value == expected, "undeferred target %d finds %d", expected, value);
      value++;
    }
    EQUAL(value, i + 5);
#pragma omp task depend(out : value) shared(value) firstprivate(i)
    {
      work(1000);
      value = i + 6;
    }
#pragma omp target update from(value) depend(in : value)
    EQUAL(value, i + 6);
  }
  EQUAL(value, length);
}

/// What is firstprivate has the value from before the wait.
static void captured_before_the_wait(void) {
  int gate = 0, number = 1, seen = 0;
#pragma omp task depend(out : gate) shared(gate, number)
  {
    work(2000);
    number = 2;
    gate = 1;
  }
  // The task may have run already; then there is nothing to tell.
#pragma omp target depend(in : gate) firstprivate(number) map(from : seen) map(to : gate)
  seen = gate * 10 + number;
  CHECK(seen == 11 || seen == 12, "seen %d", seen);
#pragma omp taskwait
  EQUAL(number, 2);
}

/// A target task that cannot start before an event.
static void event(void) {
  omp_event_handle_t handle;
  int order = 0;
  char x[1];
  (void)x;
#pragma omp task detach(handle) depend(out : x)
  {
  }
#pragma omp target nowait depend(in : x) map(tofrom : order)
  order = order == 1 ? 2 : -1;
#pragma omp target update to(order) nowait depend(inout : x)
#pragma omp task depend(in : x) shared(order)
  order = order == 2 ? 3 : -2;
  work(2000);
  EQUAL(order, 0);
  order = 1;
  omp_fulfill_event(handle);
#pragma omp taskwait
  EQUAL(order, 3);
}

/// An included task is no reason to defer.
static void in_final(void) {
  int ran = 0;
#pragma omp task final(1) shared(ran)
  {
#pragma omp target nowait map(tofrom : ran)
    ran = 1;
    EQUAL(ran, 1);
  }
#pragma omp taskwait
  EQUAL(ran, 1);
}

static void all(void) {
  deferred();
  chain(60);
  captured_before_the_wait();
  event();
  in_final();
}

/// Left to the barrier at the end.
static void nobody_waits(void) {
  int sum = 0;
#pragma omp parallel num_threads(4)
  for (int i = 0; i < 20; ++i) {
#pragma omp target nowait map(tofrom : sum) firstprivate(i)
    {
#pragma omp atomic
      sum += i;
    }
  }
  EQUAL(sum, 4 * 190);
}

/// With OMP_CANCELLATION=true: what has not begun is dropped, and later ones are not created.
static void cancelled(void) {
  int after = 0;
  char gate[1];
  (void)gate;
#pragma omp parallel num_threads(3)
#pragma omp single
  {
    omp_event_handle_t handle;
#pragma omp task detach(handle) depend(out : gate)
    {
    }
#pragma omp taskgroup
    {
      char block[100];
      memset(block, 1, sizeof block);
#pragma omp target nowait depend(in : gate) map(tofrom : after) firstprivate(block)
      after += block[99];
#pragma omp target nowait depend(in : gate) map(tofrom : after)
      after++;
#pragma omp task if (0)
      {
#pragma omp cancel taskgroup
      }
      omp_fulfill_event(handle);
#pragma omp target nowait map(tofrom : after)
      after++;
    }
  }
  EQUAL(after, 0);

  // A region that is not deferred runs, after those that had begun.
  int started = 0, go = 0, finished = 0, seen = 0;
#pragma omp parallel num_threads(3) shared(started, go, finished, seen)
#pragma omp single
#pragma omp taskgroup
  {
#pragma omp task depend(out : finished) shared(started, go, finished)
    {
      int now;
#pragma omp atomic write seq_cst
      started = 1;
      do {
#pragma omp atomic read seq_cst
        now = go;
      } while (!now);
      work(200000);
#pragma omp atomic write seq_cst
      finished = 1;
    }
    int begun;
    do {
#pragma omp atomic read seq_cst
      begun = started;
    } while (!begun);
#pragma omp task if (0)
    {
#pragma omp cancel taskgroup
    }
#pragma omp atomic write seq_cst
    go = 1;
#pragma omp target depend(in : finished) map(from : seen) map(to : finished)
    {
#pragma omp atomic read seq_cst
      seen = finished;
    }
  }
  EQUAL(seen, 1);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "cancel") == 0) {
    cancelled();
    return passed();
  }
  if (strcmp(mode, "barrier") == 0) {
    for (int round = 0; round < 50; ++round) nobody_waits();
    return passed();
  }
  all();
  for (int threads = 1; threads <= 5; threads += 2) {
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
      all();
      for (int i = 0; i < 4; ++i) {
#pragma omp task
        all();
      }
    }
#pragma omp parallel num_threads(threads)
    all();
  }
  return passed();
}
