// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Task dependences: in, out, inout, mutexinoutset, depobj, taskwait with depend, chains, diamonds and grids.
#include "check.h"

#include <omp.h>

static void work(int amount) {
  volatile int spin = 0;
  for (int i = 0; i < amount; ++i) spin = spin + i;
}

static void chain(int threads, int length) {
  int value = 0;
#pragma omp parallel num_threads(threads) shared(value)
#pragma omp single
  for (int i = 0; i < length; ++i) {
#pragma omp task depend(inout : value) firstprivate(i) shared(value)
    {
      CHECK(value == i, "chain: task %d finds %d", i, value);
      work(i % 50);
      value = i + 1;
    }
  }
  CHECK(value == length, "chain: %d", value);
}

/// One writer, many readers, one writer, ...: readers see what was written before them.
static void readers_and_writers(int threads, int rounds) {
  int value = -1, readers = 0;
#pragma omp parallel num_threads(threads) shared(value, readers)
#pragma omp single
  for (int round = 0; round < rounds; ++round) {
#pragma omp task depend(out : value) firstprivate(round) shared(value, readers)
    {
      CHECK(readers == 6 * round, "round %d: %d readers are done", round, readers);
      value = round;
    }
    for (int i = 0; i < 6; ++i) {
#pragma omp task depend(in : value) firstprivate(round, i) shared(value, readers)
      {
        work(i * 20);
        CHECK(value == round, "round %d: a reader sees %d", round, value);
#pragma omp atomic
        readers++;
      }
    }
  }
  CHECK(readers == 6 * rounds, "%d readers", readers);
}

static void diamonds(int threads, int rounds) {
  int a = 0, b = 0, c = 0, d = 0;
#pragma omp parallel num_threads(threads) shared(a, b, c, d)
#pragma omp single
  for (int i = 1; i <= rounds; ++i) {
#pragma omp task depend(out : a) shared(a) firstprivate(i)
    a = i;
#pragma omp task depend(in : a) depend(out : b) shared(a, b)
    b = 2 * a;
#pragma omp task depend(in : a) depend(out : c) shared(a, c)
    c = 3 * a;
#pragma omp task depend(in : b, c) depend(inout : d) shared(b, c, d) firstprivate(i)
    {
      CHECK(b == 2 * i && c == 3 * i, "diamond %d: b %d, c %d", i, b, c);
      d += b + c;
    }
  }
  CHECK(d == 5 * rounds * (rounds + 1) / 2, "diamonds: %d", d);
}

enum { kGrid = 24 };
static long grid[kGrid + 1][kGrid + 1];

static void wavefront(int threads) {
  for (int i = 0; i <= kGrid; ++i)
    for (int k = 0; k <= kGrid; ++k) grid[i][k] = i == 0 || k == 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
  for (int i = 1; i <= kGrid; ++i)
    for (int k = 1; k <= kGrid; ++k) {
#pragma omp task depend(in : grid[i - 1][k], grid[i][k - 1]) depend(out : grid[i][k]) \
    firstprivate(i, k)
      grid[i][k] = grid[i - 1][k] + grid[i][k - 1];
    }
  // Binomial coefficients: entry (n, n) is the central one.
  long expected[kGrid + 1][kGrid + 1];
  for (int i = 0; i <= kGrid; ++i)
    for (int k = 0; k <= kGrid; ++k) {
      expected[i][k] = i == 0 || k == 0 ? 1 : expected[i - 1][k] + expected[i][k - 1];
      CHECK(grid[i][k] == expected[i][k], "wavefront: %ld at %d,%d, expected %ld", grid[i][k], i, k,
            expected[i][k]);
    }
}

/// Members of a mutexinoutset exclude each other, in any order, after the writer and before the reader.
static void exclusive_sets(int threads, int rounds) {
  long sum = 0;
  int inside = 0, members = 0;
#pragma omp parallel num_threads(threads) shared(sum, inside, members)
#pragma omp single
  for (int round = 0; round < rounds; ++round) {
#pragma omp task depend(out : sum) shared(sum)
    sum = 0;
    for (int i = 0; i < 8; ++i) {
#pragma omp task depend(mutexinoutset : sum) shared(sum, inside, members) firstprivate(i)
      {
        CHECK(__atomic_add_fetch(&inside, 1, __ATOMIC_ACQ_REL) == 1,
              "two members of the set run at once");
        sum += i;
        work(30);
        __atomic_sub_fetch(&inside, 1, __ATOMIC_ACQ_REL);
        members++;
      }
    }
#pragma omp task depend(in : sum) shared(sum)
    CHECK(sum == 28, "the reader after the set sees %ld", sum);
  }
  CHECK(members == 8 * rounds, "%d members", members);
}

static void objects(int threads) {
  int a = 0, b = 0;
  omp_depend_t on_a, on_b;
#pragma omp depobj(on_a) depend(inout : a)
#pragma omp depobj(on_b) depend(in : b)
#pragma omp parallel num_threads(threads) shared(a, b)
#pragma omp single
  {
    for (int i = 0; i < 30; ++i) {
#pragma omp task depend(depobj : on_a) shared(a) firstprivate(i)
      {
        CHECK(a == i, "depobj: task %d finds %d", i, a);
        a++;
      }
    }
#pragma omp task depend(out : b) shared(b)
    {
      work(2000);
      b = 42;
    }
#pragma omp task depend(depobj : on_b) depend(depobj : on_a) shared(a, b)
    CHECK(b == 42 && a == 30, "depobj: a %d, b %d", a, b);
#pragma omp taskwait
#pragma omp depobj(on_b) update(inout)
    for (int i = 0; i < 10; ++i) {
#pragma omp task depend(depobj : on_b) shared(b) firstprivate(i)
      {
        CHECK(b == 42 + i, "updated depobj: task %d finds %d", i, b);
        b++;
      }
    }
  }
#pragma omp depobj(on_a) destroy
#pragma omp depobj(on_b) destroy
  CHECK(a == 30 && b == 52, "depobj: a %d, b %d", a, b);
}

static void iterators(int threads) {
  int items[16] = {0}, total = 0;
#pragma omp parallel num_threads(threads) shared(items, total)
#pragma omp single
  {
    for (int i = 0; i < 16; ++i) {
#pragma omp task depend(out : items[i]) shared(items) firstprivate(i)
      {
        work(100);
        items[i] = i;
      }
    }
#pragma omp task depend(iterator(int it = 0 : 16), in : items[it]) shared(items, total)
    for (int i = 0; i < 16; ++i) total += items[i];
  }
  CHECK(total == 120, "iterator: %d", total);
}

/// An undeferred task and a taskwait with dependences wait for their predecessors, and only for them.
static void waiting(int threads) {
#pragma omp parallel num_threads(threads)
#pragma omp single
  for (int round = 0; round < 30; ++round) {
    int a = 0, b = 0;
#pragma omp task depend(out : a) shared(a)
    {
      work(500);
      a = 1;
    }
#pragma omp task depend(in : a) if (0) shared(a)
    {
      CHECK(a == 1, "an undeferred task did not wait for its predecessor");
      a = 2;
    }
    CHECK(a == 2, "an undeferred task was deferred");
#pragma omp task depend(inout : b) shared(b)
    {
      work(500);
      b = 5;
    }
#pragma omp taskwait depend(in : b)
    CHECK(b == 5, "taskwait depend came back early");
#pragma omp task depend(out : b) shared(b)
    b = 6;
#pragma omp taskwait
    CHECK(b == 6, "taskwait: %d", b);
  }
}

/// Dependences order siblings only: the children of different tasks do not wait for each other.
static void siblings_only(int threads) {
  __attribute__((unused)) int address = 0;
  int order = 0;
#pragma omp parallel num_threads(threads) shared(address, order)
  {
    int mine = 0;
    for (int i = 0; i < 20; ++i) {
#pragma omp task depend(inout : address) shared(mine, order) firstprivate(i)
      {
        CHECK(mine == i, "a task ran out of order among its siblings: %d, not %d", mine, i);
        mine++;
#pragma omp atomic
        order++;
      }
    }
#pragma omp taskwait
    CHECK(mine == 20, "%d tasks", mine);
  }
  CHECK(order == 20 * threads, "%d tasks in all", order);
}

/// A taskgroup waits for tasks that depend on tasks from before it, which it does not wait for itself:
/// whoever waits at its end may have to run these, too.
static void inner_groups(int threads, int rounds) {
  int value = 0, next = 0;
#pragma omp parallel num_threads(threads) shared(value, next)
#pragma omp single
#pragma omp taskgroup
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 3; ++i) {
#pragma omp task depend(in : value) shared(value, next) firstprivate(round, i)
      {
        work(i * 200);
        CHECK(value == round, "inner groups: a reader of round %d sees %d", round, value);
#pragma omp atomic
        next++;
      }
    }
#pragma omp taskgroup
    {
#pragma omp task depend(out : value) shared(value, next) firstprivate(round)
      {
        CHECK(next == 3 * (round + 1), "inner groups: %d readers of round %d", next, round);
        value = round + 1;
      }
    }
    CHECK(value == round + 1, "inner groups: the end of round %d came early", round);
  }
  CHECK(value == rounds, "inner groups: %d", value);
}

int main(void) {
  omp_set_dynamic(0);
  int sizes[] = {omp_get_max_threads(), 1, 2, 4, 8};
  for (int s = 0; s < 5; ++s) {
    int threads = sizes[s];
    for (int round = 0; round < 5; ++round) {
      chain(threads, 300);
      readers_and_writers(threads, 40);
      diamonds(threads, 60);
      wavefront(threads);
      exclusive_sets(threads, 20);
      objects(threads);
      iterators(threads);
      waiting(threads);
      siblings_only(threads);
      inner_groups(threads, 20);
    }
  }
  return passed();
}
