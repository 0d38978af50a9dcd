// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Explicit tasks: recursion, taskwait, taskgroup, taskyield, if, final, mergeable, untied, priority, and the
// barriers that must finish them.
#include "check.h"

#include <omp.h>
#include <stdint.h>

static long fib(int n) {
  if (n < 2) return n;
  long a, b;
#pragma omp task shared(a)
  a = fib(n - 1);
#pragma omp task shared(b)
  b = fib(n - 2);
#pragma omp taskwait
  return a + b;
}

static long fib_untied(int n, int depth) {
  if (n < 2) return n;
  long a, b;
#pragma omp task shared(a) untied if (depth < 8) final(depth > 10) mergeable
  a = fib_untied(n - 1, depth + 1);
  b = fib_untied(n - 2, depth + 1);
#pragma omp taskwait
  return a + b;
}

static void recursion(int threads) {
  long result = 0, untied = 0;
#pragma omp parallel num_threads(threads) shared(result, untied)
#pragma omp single
  {
    result = fib(18);
#pragma omp task untied shared(untied)
    untied = fib_untied(18, 0);
  }
  CHECK(result == 2584 && untied == 2584, "fib(18): %ld and %ld", result, untied);
}

/// One producer, many tasks; all are done at the barrier, wherever it is.
static void producer(int threads, int count) {
  int done = 0;
  char* ran = calloc((size_t)count, 1);
  CHECK(ran, "no memory");
#pragma omp parallel num_threads(threads) shared(done)
  {
#pragma omp single nowait
    for (int i = 0; i < count; ++i) {
#pragma omp task firstprivate(i) shared(done)
      {
        ran[i]++;
#pragma omp atomic
        done++;
      }
    }
#pragma omp barrier
    int seen;
#pragma omp atomic read
    seen = done;
    CHECK(seen == count, "after a barrier %d of %d tasks are done", seen, count);
#pragma omp barrier
#pragma omp master
    for (int i = 0; i < count; ++i) {
#pragma omp task firstprivate(i) shared(done)
      {
        ran[i]++;
#pragma omp atomic
        done++;
      }
    }
    // No barrier: the end of the region is one.
  }
  CHECK(done == 2 * count, "%d of %d tasks done at the end of the region", done, 2 * count);
  for (int i = 0; i < count; ++i) CHECK(ran[i] == 2, "task %d ran %d times", i, ran[i]);
  free(ran);
}

/// Everybody produces, tasks make tasks.
static void storm(int threads, int depth, int width) {
  long done = 0;
#pragma omp parallel num_threads(threads) shared(done)
  {
    for (int i = 0; i < width; ++i) {
#pragma omp task shared(done) firstprivate(depth, width)
      {
        for (int k = 0; k < width; ++k) {
#pragma omp task shared(done) firstprivate(depth)
          for (int d = 0; d < depth; ++d) {
#pragma omp task shared(done)
            {
#pragma omp atomic
              done++;
            }
          }
        }
      }
    }
  }
  CHECK(done == (long)threads * width * width * depth, "storm: %ld tasks", done);
}

/// taskwait waits for children only; taskgroup for all descendants.
static void groups(int threads) {
#pragma omp parallel num_threads(threads)
  {
    int children = 0, grandchildren = 0;
    for (int round = 1; round <= 10; ++round) {
#pragma omp taskgroup
      {
        for (int i = 0; i < 4; ++i) {
#pragma omp task shared(children, grandchildren)
          {
#pragma omp atomic
            children++;
            for (int k = 0; k < 3; ++k) {
#pragma omp task shared(grandchildren)
              {
#pragma omp taskyield
#pragma omp atomic
                grandchildren++;
              }
            }
          }
        }
#pragma omp taskgroup
        {
#pragma omp task shared(children)
          {
#pragma omp atomic
            children++;
          }
        }
      }
      CHECK(children == 5 * round && grandchildren == 12 * round,
            "taskgroup %d: %d children, %d grandchildren", round, children, grandchildren);
      int direct = 0;
      for (int i = 0; i < 4; ++i) {
#pragma omp task shared(direct)
        {
#pragma omp atomic
          direct++;
        }
      }
#pragma omp taskwait
      CHECK(direct == 4, "taskwait: %d of 4 children", direct);
    }
  }
}

/// Undeferred tasks run at once in the encountering thread; included ones inside final ones.
static void undeferred(int threads) {
#pragma omp parallel num_threads(threads)
  {
    int me = omp_get_thread_num(), state = 0;
#pragma omp task if (0) shared(state)
    {
      CHECK(omp_get_thread_num() == me, "an undeferred task runs on thread %d",
            omp_get_thread_num());
      state = 1;
    }
    CHECK(state == 1, "an undeferred task was deferred");
    int in_final = 0, nested_final = 0, ordinary = 1;
#pragma omp task final(1) shared(in_final, nested_final)
    {
      int step = 0;
      in_final = omp_in_final();
#pragma omp task shared(nested_final, step)
      {
        nested_final = omp_in_final();
        step = 1;
      }
      CHECK(step == 1, "an included task was deferred");
    }
#pragma omp task shared(ordinary)
    ordinary = omp_in_final();
#pragma omp taskwait
    CHECK(in_final == 1 && nested_final == 1 && ordinary == 0, "omp_in_final: %d %d %d", in_final,
          nested_final, ordinary);
  }
  CHECK(!omp_in_final(), "final outside");
}

typedef struct {
  _Alignas(64) char text[200];
} Aligned;

/// Data is copied when the task is made; sizes and alignments of all kinds, variable-length arrays too.
static void data(int threads) {
  int wrong = 0;
#pragma omp parallel num_threads(threads) shared(wrong)
#pragma omp single
  for (int i = 0; i < 200; ++i) {
    int n = 1 + i % 70;
    long vla[n];
    Aligned aligned;
    char byte = (char)i;
    for (int k = 0; k < n; ++k) vla[k] = (long)i * 1000 + k;
    memset(&aligned, i, sizeof aligned);
#pragma omp task firstprivate(vla, aligned, byte, i, n) shared(wrong)
    {
      int bad = ((uintptr_t)&aligned % 64) != 0;
      for (int k = 0; k < n; ++k) bad += vla[k] != (long)i * 1000 + k;
      for (int k = 0; k < 200; ++k) bad += aligned.text[k] != (char)i;
      bad += byte != (char)i;
      if (bad) {
#pragma omp atomic
        wrong += bad;
      }
    }
    for (int k = 0; k < n; ++k) vla[k] = -1;
    memset(&aligned, 0xee, sizeof aligned);
  }
  CHECK(wrong == 0, "%d values of firstprivate data are wrong", wrong);
}

static void priorities(int threads) {
  int done = 0, order[100], place = 0;
#pragma omp parallel num_threads(threads) shared(done)
#pragma omp single
  for (int i = 0; i < 100; ++i) {
#pragma omp task priority(i % 7) shared(done, order, place) firstprivate(i)
    {
      int mine;
#pragma omp atomic capture
      mine = place++;
      order[mine] = i;
#pragma omp atomic
      done++;
    }
  }
  CHECK(done == 100, "%d of 100 tasks with priority ran", done);
  char seen[100] = {0};
  for (int i = 0; i < 100; ++i) {
    CHECK(order[i] >= 0 && order[i] < 100 && !seen[order[i]], "task %d ran twice", order[i]);
    seen[order[i]] = 1;
  }
}

/// The compiler takes omp_get_thread_num for constant within a function: ask where it cannot see it.
__attribute__((noipa)) static int thread_now(void) { return omp_get_thread_num(); }

/// A task keeps its thread over a taskwait: omp_get_thread_num does not change in a tied task.
static void tied(int threads) {
#pragma omp parallel num_threads(threads)
#pragma omp single
  for (int i = 0; i < 40; ++i) {
#pragma omp task
    {
      int before = thread_now();
      for (int k = 0; k < 4; ++k) {
#pragma omp task
        {
#pragma omp taskyield
        }
#pragma omp taskwait
#pragma omp taskyield
        CHECK(before == thread_now(), "a tied task moved from thread %d to %d", before,
              thread_now());
      }
    }
  }
}

/// Tasks outside any region, and in a region of one thread.
static void orphaned(void) {
  int steps = 0;
#pragma omp task shared(steps)
  steps++;
#pragma omp taskwait
  CHECK(steps == 1, "a task outside a region: %d", steps);
#pragma omp taskgroup
  {
#pragma omp task shared(steps)
    steps++;
  }
  CHECK(steps == 2, "a taskgroup outside a region: %d", steps);
#pragma omp taskloop shared(steps)
  for (int i = 0; i < 10; ++i) {
#pragma omp atomic
    steps++;
  }
  CHECK(steps == 12, "a taskloop outside a region: %d", steps);
  CHECK(fib(12) == 144, "fib outside a region");
#pragma omp taskyield
#pragma omp taskwait
}

/// Tasks open regions of their own, and regions in tasks hold tasks.
static void regions_in_tasks(int threads) {
  long done = 0;
#pragma omp parallel num_threads(threads) shared(done)
#pragma omp single
  for (int i = 0; i < 12; ++i) {
#pragma omp task shared(done) firstprivate(i)
    {
      long inner = 0;
#pragma omp parallel num_threads(1 + i % 4) shared(inner)
      {
        CHECK(omp_get_num_threads() == 1 + i % 4, "region in a task: team of %d",
              omp_get_num_threads());
#pragma omp single
        for (int k = 0; k < 5; ++k) {
#pragma omp task shared(inner)
          {
#pragma omp atomic
            inner++;
          }
        }
#pragma omp barrier
      }
      CHECK(inner == 5, "%ld inner tasks", inner);
#pragma omp atomic
      done += inner;
    }
  }
  CHECK(done == 60, "%ld inner tasks in all", done);
}

/// Tasks take a lock and a critical region.
static void locking(int threads) {
  long a = 0, b = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
#pragma omp parallel num_threads(threads) shared(a, b, lock)
  for (int i = 0; i < 50; ++i) {
#pragma omp task shared(a, b, lock)
    {
#pragma omp critical
      a++;
      omp_set_lock(&lock);
      b++;
      omp_unset_lock(&lock);
    }
  }
  CHECK(a == 50L * threads && b == a, "%ld and %ld of %ld", a, b, 50L * threads);
  omp_destroy_lock(&lock);
}

int main(void) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(4);
  orphaned();
  int sizes[] = {omp_get_max_threads(), 1, 2, 4, 8};
  for (int s = 0; s < 5; ++s) {
    int threads = sizes[s];
    recursion(threads);
    producer(threads, 1000);
    producer(threads, 20000);
    for (int round = 0; round < 5; ++round) {
      storm(threads, 3, 8);
      groups(threads);
      undeferred(threads);
      data(threads);
      priorities(threads);
      tied(threads);
      regions_in_tasks(threads);
      locking(threads);
    }
  }
  return passed();
}
