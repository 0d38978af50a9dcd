// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads of bosk.h: made, joined, ended in every way, from every sort of caller. The argument says what.
#include "bosk_check.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>

static int count;
static void* add_one(void* argument) {
  __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
  return argument;
}

static void many(void) {
  enum { kThreads = 1000, kRounds = 20 };
  bosk_thread_t thread[kThreads];
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kThreads; ++i)
      OK(bosk_thread_create(&thread[i], NULL, add_one, &thread[i]));
    for (int i = 0; i < kThreads; ++i) {
      void* result = NULL;
      OK(bosk_thread_join(thread[i], &result));
      CHECK(result == &thread[i], "thread %d returned %p", i, result);
    }
  }
  CHECK(count == kThreads * kRounds, "%d threads ran", count);
}

// Joins from threads, several levels deep: more that wait than workers.
static void* fibonacci(void* argument) {
  const intptr_t n = (intptr_t)argument;
  if (n < 2) return argument;
  bosk_thread_t other;
  OK(bosk_thread_create(&other, NULL, fibonacci, (void*)(n - 1)));
  const intptr_t mine = (intptr_t)fibonacci((void*)(n - 2));
  void* result;
  OK(bosk_thread_join(other, &result));
  return (void*)(mine + (intptr_t)result);
}
static void recursive(void) {
  bosk_thread_t thread;
  void* result;
  OK(bosk_thread_create(&thread, NULL, fibonacci, (void*)18));
  OK(bosk_thread_join(thread, &result));
  CHECK((intptr_t)result == 2584, "fibonacci(18) = %ld", (long)(intptr_t)result);
}

// Every thread that is alive has an identity that no other has, from its start to its end.
enum { kAlive = 50 };
static pthread_t identity[kAlive];
static int started;
static _Thread_local int mine;
static void* look_at_itself(void* argument) {
  const intptr_t number = (intptr_t)argument;
  identity[number] = pthread_self();
  mine = (int)number;
  __atomic_fetch_add(&started, 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(&started, __ATOMIC_ACQUIRE) < kAlive) OK(bosk_thread_yield());
  CHECK(pthread_equal(identity[number], pthread_self()), "thread %ld changed its identity",
        (long)number);
  CHECK(mine == (int)number, "thread %ld finds %d in its variable", (long)number, mine);
  return NULL;
}
static void identities(void) {
  bosk_thread_t thread[kAlive];
  for (intptr_t i = 0; i < kAlive; ++i)
    OK(bosk_thread_create(&thread[i], NULL, look_at_itself, (void*)i));
  for (int i = 0; i < kAlive; ++i) OK(bosk_thread_join(thread[i], NULL));
  for (int i = 0; i < kAlive; ++i)
    for (int j = 0; j < i; ++j)
      CHECK(!pthread_equal(identity[i], identity[j]), "threads %d and %d had one identity", i, j);
}

// They spin for each other: only preemption gets them on.
static int turn;
static void* spin_for_turn(void* argument) {
  const int number = (int)(intptr_t)argument;
  while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != number) {
  }
  __atomic_store_n(&turn, number - 1, __ATOMIC_RELEASE);
  return NULL;
}
static void spinning(void) {
  enum { kThreads = 8 };
  bosk_thread_t thread[kThreads + 1];
  // The one that goes first is made last.
  turn = kThreads;
  for (intptr_t i = 1; i <= kThreads; ++i)
    OK(bosk_thread_create(&thread[i], NULL, spin_for_turn, (void*)i));
  for (int i = 1; i <= kThreads; ++i) OK(bosk_thread_join(thread[i], NULL));
  CHECK(turn == 0, "turn %d", turn);
}

// Main spins: its worker has to run what main waits for.
static void* raise_flag(void* argument) {
  __atomic_store_n((int*)argument, 1, __ATOMIC_RELEASE);
  return NULL;
}
static void main_spins(void) {
  int flag = 0;
  bosk_thread_t thread;
  OK(bosk_thread_create(&thread, NULL, raise_flag, &flag));
  while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE)) {
  }
  OK(bosk_thread_join(thread, NULL));
}

// Main is blocked in the kernel until a thread writes.
static void* write_byte(void* argument) {
  CHECK(write(*(int*)argument, "x", 1) == 1, "write: %s", strerror(errno));
  return NULL;
}
static void main_blocks(void) {
  int pipe_ends[2];
  CHECK(pipe(pipe_ends) == 0, "pipe: %s", strerror(errno));
  bosk_thread_t thread;
  OK(bosk_thread_create(&thread, NULL, write_byte, &pipe_ends[1]));
  char byte = 0;
  CHECK(read(pipe_ends[0], &byte, 1) == 1 && byte == 'x', "read: %s", strerror(errno));
  OK(bosk_thread_join(thread, NULL));
}

static int leave_deep_in(int depth) {
  volatile int here = depth;
  if (depth == 0) return bosk_thread_exit(&count);
  return leave_deep_in(depth - 1) + here;
}
static void* leave_deep(void* argument) {
  leave_deep_in((int)(intptr_t)argument);
  CHECK(0, "bosk_thread_exit() came back");
  return NULL;
}
static void exits(void) {
  for (int i = 0; i < 100; ++i) {
    bosk_thread_t thread;
    void* result = NULL;
    OK(bosk_thread_create(&thread, NULL, leave_deep, (void*)(intptr_t)(i % 7)));
    OK(bosk_thread_join(thread, &result));
    CHECK(result == &count, "result %p", result);
  }
  CHECK(bosk_thread_exit(NULL) == BOSK_EPERM, "main could leave by bosk_thread_exit()");
}

static void detached(void) {
  enum { kThreads = 200 };
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.detached = 1;
  for (int i = 0; i < kThreads; ++i) OK(bosk_thread_create(NULL, &attr, add_one, NULL));
  for (int i = 0; i < kThreads; ++i) {
    bosk_thread_t thread;
    OK(bosk_thread_create(&thread, NULL, add_one, NULL));
    const int error = bosk_thread_detach(thread);
    CHECK(error == BOSK_OK, "detach: %s", bosk_strerror(error));
    const int again = bosk_thread_detach(thread);
    CHECK(again == BOSK_ESTATE || again == BOSK_ESTALE, "detached twice: %d", again);
  }
  while (__atomic_load_n(&count, __ATOMIC_RELAXED) != 2 * kThreads) OK(bosk_thread_yield());
}

static void* asleep_until_woken(void* argument) {
  CHECK(__atomic_load_n((int*)argument, __ATOMIC_ACQUIRE) == 1, "it ran before it was woken");
  return NULL;
}
static void sleepers(void) {
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.asleep = 1;
  int woken = 0;
  bosk_thread_t sleeper;
  OK(bosk_thread_create(&sleeper, &attr, asleep_until_woken, &woken));
  recursive();  // time enough for it to run
  __atomic_store_n(&woken, 1, __ATOMIC_RELEASE);
  OK(bosk_thread_wake(sleeper));
  CHECK(bosk_thread_wake(sleeper) == BOSK_ESTATE, "woken twice");
  OK(bosk_thread_join(sleeper, NULL));
}

// Other pthreads make threads and wait for them, and end before main does the same.
static void* foreign(void* argument) {
  (void)argument;
  for (int i = 0; i < 4; ++i) recursive();
  return NULL;
}
static void pthreads(void) {
  pthread_t pthread[4];
  for (int i = 0; i < 4; ++i)
    CHECK(pthread_create(&pthread[i], NULL, foreign, NULL) == 0, "pthread_create");
  for (int i = 0; i < 4; ++i) pthread_join(pthread[i], NULL);
  recursive();
}

static void* fork_inside(void* argument) {
  (void)argument;
  const pid_t child = fork();
  CHECK(child >= 0, "fork: %s", strerror(errno));
  if (child == 0) {
    arm_watchdog(20);
    recursive();
    _exit(7);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7,
        "the child ended with %#x", (unsigned)status);
  return NULL;
}
static void forks(void) {
  many();
  fork_inside(NULL);
  recursive();
  bosk_thread_t thread;
  OK(bosk_thread_create(&thread, NULL, fork_inside, NULL));
  OK(bosk_thread_join(thread, NULL));
  recursive();
}

// A forked child has none of its parent's threads and bubbles: their handles name nothing there, whatever state they were
// in, and no handle that the child makes is one of them.
static void* forked_inside(void* argument) {
  (void)argument;
  const bosk_thread_t me = bosk_thread_self();
  CHECK(me != NULL, "the thread has no handle");
  const pid_t child = fork();
  CHECK(child >= 0, "fork: %s", strerror(errno));
  if (child == 0) {
    arm_watchdog(20);
    CHECK(bosk_thread_self() == NULL, "the thread that forked has a handle in the child");
    FAILS(bosk_thread_join(me, NULL), BOSK_ESTALE);
    recursive();
    _exit(7);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7,
        "the child ended with %#x", (unsigned)status);
  CHECK(bosk_thread_self() == me, "another handle in the parent");
  return NULL;
}
static void* recursive_thread(void* argument) {
  recursive();
  return argument;
}
static void stale_in_child(void) {
  enum { kThreads = 3 };
  bosk_thread_t threads[kThreads];  // ended, asleep, in a bubble
  bosk_bubble_t bubbles[2];         // asleep, woken
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  OK(bosk_thread_create(&threads[0], NULL, fork_inside, NULL));
  for (bosk_stats_t stats = {.size = sizeof stats, .threads = 1}; stats.threads != 0;) {
    OK(bosk_thread_get_stats(threads[0], &stats));
    OK(bosk_thread_yield());
  }
  attr.asleep = 1;
  OK(bosk_thread_create(&threads[1], &attr, forked_inside, NULL));
  OK(bosk_thread_create(&threads[2], &attr, forked_inside, NULL));
  for (int i = 0; i < 2; ++i) OK(bosk_bubble_create(&bubbles[i]));
  OK(bosk_bubble_insert_thread(bubbles[0], threads[2]));
  OK(bosk_bubble_wake(bubbles[1], NULL));
  const pid_t child = fork();
  CHECK(child >= 0, "fork: %s", strerror(errno));
  if (child == 0) {
    arm_watchdog(20);
    // Before the child has anything of its own, and after.
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < kThreads; ++i) {
        void* result = &threads[i];
        bosk_stats_t stats = {.size = sizeof stats};
        FAILS(bosk_thread_join(threads[i], &result), BOSK_ESTALE);
        CHECK(result == &threads[i], "a result of what is not there");
        FAILS(bosk_thread_detach(threads[i]), BOSK_ESTALE);
        FAILS(bosk_thread_wake(threads[i]), BOSK_ESTALE);
        FAILS(bosk_thread_get_stats(threads[i], &stats), BOSK_ESTALE);
      }
      for (int i = 0; i < 2; ++i) {
        FAILS(bosk_bubble_join(bubbles[i]), BOSK_ESTALE);
        FAILS(bosk_bubble_destroy(bubbles[i]), BOSK_ESTALE);
        FAILS(bosk_bubble_wake(bubbles[i], NULL), BOSK_ESTALE);
      }
      recursive();
    }
    bosk_thread_t own;
    OK(bosk_thread_create(&own, &attr, recursive_thread, NULL));
    for (int i = 0; i < kThreads; ++i) CHECK(own != threads[i], "a handle of the parent's");
    FAILS(bosk_bubble_insert_thread(bubbles[0], own), BOSK_ESTALE);
    // The child's are its own child's as little.
    const pid_t second = fork();
    CHECK(second >= 0, "fork: %s", strerror(errno));
    if (second == 0) {
      arm_watchdog(20);
      FAILS(bosk_thread_wake(own), BOSK_ESTALE);
      recursive();
      _exit(0);
    }
    int status = 0;
    CHECK(waitpid(second, &status, 0) == second && status == 0, "the child's child: %#x",
          (unsigned)status);
    OK(bosk_thread_wake(own));
    OK(bosk_thread_join(own, NULL));
    _exit(7);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7,
        "the child ended with %#x", (unsigned)status);
  OK(bosk_thread_wake(threads[1]));
  OK(bosk_bubble_wake(bubbles[0], NULL));
  for (int i = 0; i < kThreads; ++i) OK(bosk_thread_join(threads[i], NULL));
  for (int i = 0; i < 2; ++i) OK(bosk_bubble_destroy(bubbles[i]));
}

// The process ends while threads run.
static void* run_for_ever(void* argument) {
  for (;;) *(volatile char*)argument += 1;
  return NULL;
}
static void ends(void) {
  static char byte;
  bosk_thread_t thread;
  for (int i = 0; i < 4; ++i) OK(bosk_thread_create(&thread, NULL, run_for_ever, &byte));
  recursive();
}

int main(int argc, char** argv) {
  static const struct test kTests[] = {{"many", many},
                                       {"recursive", recursive},
                                       {"identities", identities},
                                       {"spinning", spinning},
                                       {"main-spins", main_spins},
                                       {"main-blocks", main_blocks},
                                       {"exits", exits},
                                       {"detached", detached},
                                       {"sleepers", sleepers},
                                       {"pthreads", pthreads},
                                       {"forks", forks},
                                       {"ends", ends},
                                       {"stale-in-child", stale_in_child}};
  return RUN_TEST(argc, argv, kTests);
}
