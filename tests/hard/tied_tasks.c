// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A task that computes is not set aside for another one: what belongs to its thread is its own until it ends.
//   tied_tasks MODE [MEMBERS]
#include "hard.h"

#include <pthread.h>

enum { kTasks = 16 };

static int members;

__attribute__((noinline)) static long add_up(long start, long count) {
  for (long i = 0; i < count; ++i) {
    start += i & 1;
    __asm__ volatile("" : "+r"(start));
  }
  return start;
}

/// The private copy belongs to the thread: a task in the middle of another one would lose the other's part.
static void reduction(void) {
  long each = 2 * ((rounds_per_ms_ * 40) / 2);
  long sum = 0;
#pragma omp parallel num_threads(members)
#pragma omp single
#pragma omp taskloop grainsize(1) reduction(+ : sum)
  for (int i = 0; i < kTasks; ++i) {
    sum = add_up(sum, each);
    delay_rounds(each / 4);
  }
  CHECK(sum == kTasks * (each / 2), "the sum is %ld, not %ld", sum, kTasks * (each / 2));
}

/// The same for an array and with explicit tasks.
static void array_reduction(void) {
  enum { kCells = 32 };
  double cells[kCells] = {0};
#pragma omp parallel num_threads(members)
#pragma omp single
#pragma omp taskgroup task_reduction(+ : cells)
  {
    for (int i = 0; i < kTasks; ++i) {
#pragma omp task in_reduction(+ : cells) firstprivate(i)
      {
        double mine[kCells];
        for (int c = 0; c < kCells; ++c) mine[c] = cells[c];
        compute(40);
        for (int c = 0; c < kCells; ++c) cells[c] = mine[c] + i + c;
      }
    }
  }
  for (int c = 0; c < kCells; ++c)
    CHECK(cells[c] == kTasks * (kTasks - 1) / 2 + kTasks * c, "cell %d is %g", c, cells[c]);
}

/// One scratch array for each thread of the team.
static void scratch(void) {
  enum { kCells = 256 };
  int(*of_thread)[kCells] = calloc((size_t)members, sizeof *of_thread);
  int done = 0;
#pragma omp parallel num_threads(members)
#pragma omp single
  for (int i = 0; i < kTasks; ++i) {
#pragma omp task firstprivate(i) shared(of_thread, done)
    {
      const int me = omp_get_thread_num();
      int* mine = of_thread[me];
      for (int c = 0; c < kCells; ++c) mine[c] = i + c;
      compute(30 + i % 3 * 15);
      for (int c = 0; c < kCells; ++c)
        CHECK(mine[c] == i + c, "somebody wrote to the scratch of thread %d during task %d", me, i);
      CHECK(omp_get_thread_num() == me, "a tied task moved");
#pragma omp atomic
      done++;
    }
  }
  CHECK(done == kTasks, "%d tasks ran", done);
  free(of_thread);
}

#ifdef WITH_THREADPRIVATE
// Volatile: the compiler must not conclude that nobody else can have changed it.
static volatile int current;
#pragma omp threadprivate(current)

static void threadprivate_data(void) {
  int done = 0;
#pragma omp parallel num_threads(members)
#pragma omp single
  for (int i = 1; i <= kTasks; ++i) {
#pragma omp task firstprivate(i) shared(done)
    {
      const volatile int* where = &current;
      current = i;
      compute(30 + i % 3 * 15);
      CHECK(current == i, "threadprivate data of task %d hold %d", i, current);
      CHECK(where == &current, "the data moved");
#pragma omp atomic
      done++;
    }
  }
  CHECK(done == kTasks, "%d tasks ran", done);
}
#endif

/// A lock is held by long tasks: nobody else may get in, and who is in gets out.
struct lock {
  void (*lock)(void);
  void (*unlock)(void);
};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static omp_lock_t simple;
static omp_nest_lock_t nestable;

static void lock_mutex(void) {
  const int error = pthread_mutex_lock(&mutex);
  CHECK(error == 0, "pthread_mutex_lock: %d", error);
}
static void unlock_mutex(void) {
  const int error = pthread_mutex_unlock(&mutex);
  CHECK(error == 0, "pthread_mutex_unlock: %d", error);
}
static void lock_simple(void) { omp_set_lock(&simple); }
static void unlock_simple(void) { omp_unset_lock(&simple); }
static void lock_nestable(void) { omp_set_nest_lock(&nestable); }
static void unlock_nestable(void) { omp_unset_nest_lock(&nestable); }

static void locked(const char* kind) {
  struct lock lock = {lock_mutex, unlock_mutex};
#ifdef MUTEX_TYPE
  pthread_mutexattr_t attribute;
  pthread_mutexattr_init(&attribute);
  pthread_mutexattr_settype(&attribute, MUTEX_TYPE);
  pthread_mutex_init(&mutex, &attribute);
#endif
  if (is(kind, "recursive")) mutex = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  if (is(kind, "errorcheck")) mutex = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  if (is(kind, "omp_lock")) {
    omp_init_lock(&simple);
    lock = (struct lock){lock_simple, unlock_simple};
  }
  if (is(kind, "omp_nest_lock")) {
    omp_init_nest_lock(&nestable);
    lock = (struct lock){lock_nestable, unlock_nestable};
  }
  int inside = 0, done = 0;
#pragma omp parallel num_threads(members)
#pragma omp single
  for (int i = 0; i < kTasks; ++i) {
#pragma omp task firstprivate(i) shared(lock, inside, done)
    {
      lock.lock();
      const int before = __atomic_fetch_add(&inside, 1, __ATOMIC_ACQ_REL);
      CHECK(before == 0, "%d others hold the lock of task %d", before, i);
      compute(25);
      const int after = __atomic_sub_fetch(&inside, 1, __ATOMIC_ACQ_REL);
      CHECK(after == 0, "%d others got the lock of task %d", after, i);
      ++done;
      lock.unlock();
    }
  }
  CHECK(done == kTasks, "%d tasks ran", done);
}

/// As many tasks as threads; all but the first spin for the one made before it.
static void earlier(int barrier, int nested) {
  int* flags = calloc((size_t)members, sizeof *flags);
  int done = 0;
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(nested ? 2 : 1)
  {
    if (omp_get_thread_num() == 0) {
#pragma omp parallel num_threads(members) shared(done)
      {
#pragma omp single nowait
        for (int i = 0; i < members; ++i) {
#pragma omp task firstprivate(i) shared(done)
          {
            while (i > 0 && !__atomic_load_n(&flags[i - 1], __ATOMIC_ACQUIRE)) {
            }
            // Else one thread may run them all, one after the other. Among 64 spinning kernel threads it takes too long.
            if (members <= 16) compute(.1);
            __atomic_store_n(&flags[i], 1, __ATOMIC_RELEASE);
#pragma omp atomic
            done++;
          }
        }
        if (barrier) {
#pragma omp barrier
          CHECK(done == members, "%d of %d tasks ran before the barrier", done, members);
        }
      }
    }
  }
  CHECK(done == members, "%d of %d tasks ran", done, members);
  free(flags);
}

/// The last member makes a task for each of the others, which have nothing else to do, and spins for the tasks.
static void creator_spins(void) {
  const int tasks = members - 1;
  int done = 0;
#pragma omp parallel num_threads(members) shared(done)
  if (omp_get_thread_num() == members - 1) {
    for (int i = 0; i < tasks; ++i) {
#pragma omp task shared(done)
      {
        compute(5);
        __atomic_add_fetch(&done, 1, __ATOMIC_ACQ_REL);
      }
    }
    while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < tasks) {
    }
  }
  CHECK(done == tasks, "%d of %d tasks ran", done, tasks);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  members = argc > 2 ? atoi(argv[2]) : omp_get_max_threads();
  omp_set_dynamic(0);
  if (is(mode, "reduction")) {
    reduction();
  } else if (is(mode, "array_reduction")) {
    array_reduction();
  } else if (is(mode, "scratch")) {
    scratch();
#ifdef WITH_THREADPRIVATE  // in a program of its own: the others have no TLS
  } else if (is(mode, "threadprivate")) {
    threadprivate_data();
#endif
  } else if (is(mode, "mutex") || is(mode, "recursive") || is(mode, "errorcheck") ||
             is(mode, "omp_lock") || is(mode, "omp_nest_lock")) {
    locked(mode);
  } else if (is(mode, "earlier")) {
    earlier(0, 0);
  } else if (is(mode, "earlier_barrier")) {
    earlier(1, 0);
  } else if (is(mode, "earlier_nested")) {
    earlier(0, 1);
  } else if (is(mode, "creator_spins")) {
    creator_spins();
  } else {
    no_such_mode();
  }
  return passed();
}
