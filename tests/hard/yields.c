// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members that wait by sched_yield() or by short sleeps, as spin locks of libraries and hand-written barriers do.
//   yields ring | stages | all | inner | chain | unequal | tasks | handler | alternate | foreign | child | vfork | others | early | rest
//          [yield | usleep | nanosleep | sleep]
#include "hard.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { kRounds = 200, kMost = 256 };

static int by_usleep(void) { return usleep(1); }
static int by_nanosleep(void) {
  const struct timespec time = {0, 20000};
  return nanosleep(&time, NULL) != 0 && errno != EINTR;
}
static int by_sleep(void) { return (int)sleep(0); }
static int (*give_up)(void) = sched_yield;

static void wait_for(atomic_long* word, long value) {
  while (atomic_load_explicit(word, memory_order_acquire) < value) give_up();
}

/// A token goes round: each member waits for the one before.
static void ring(void) {
  atomic_long token = 0;
  long passed = 0;  // by whoever has the token
  int size = 0;
  long rounds = 0;
#pragma omp parallel
  {
    const int me = omp_get_thread_num(), team = omp_get_num_threads();
    // A turn may cost a pass of the kernel's over all who wait: large teams go round less often.
    const long mine = team <= 16 ? kRounds : kRounds * 16 / team / 4;
    if (me == 0) {
      size = team;
      rounds = mine;
    }
    for (long round = 0; round < mine; round++) {
      wait_for(&token, round * team + me);
      passed++;
      atomic_store_explicit(&token, round * team + me + 1, memory_order_release);
    }
  }
  CHECK(passed == rounds * size, "%ld turns of %d members", passed, size);
}

/// Inner teams whose members pass planes on, in two outer members at a time.
static void stages(void) {
  omp_set_max_active_levels(2);
  long sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
  {
    atomic_long done[16] = {0};
    long planes[16] = {0};
#pragma omp parallel num_threads(omp_get_max_threads() < 8 ? omp_get_max_threads() : 8)
    {
      const int me = omp_get_thread_num();
      for (long plane = 1; plane <= kRounds; plane++) {
        if (me > 0) wait_for(&done[me - 1], plane);
        planes[me] += me == 0 || atomic_load(&done[me - 1]) >= plane;
        atomic_store_explicit(&done[me], plane, memory_order_release);
      }
#pragma omp barrier
#pragma omp single
      for (int i = 0; i < omp_get_num_threads(); i++) sum += planes[i] == kRounds;
    }
  }
  const int inner = omp_get_max_threads() < 8 ? omp_get_max_threads() : 8;
  CHECK(sum == 2L * inner, "%ld stages of %d have seen all planes", sum, 2 * inner);
}

/// A barrier of the program's own, over the members of inner teams.
static void inner(void) {
  omp_set_max_active_levels(2);
  atomic_long met = 0;
  int size = 0;
#pragma omp parallel num_threads(2)
  for (int region = 0; region < kRounds / 10; region++) {
    atomic_long here = 0;
#pragma omp parallel
    {
      atomic_fetch_add(&here, 1);
      wait_for(&here, omp_get_num_threads());
      atomic_fetch_add(&met, 1);
      if (omp_get_ancestor_thread_num(1) == 0 && omp_get_thread_num() == 0)
        size = omp_get_num_threads();
    }
  }
  CHECK(met == 2L * size * (kRounds / 10), "%ld members of teams of %d have met", (long)met, size);
}

/// A barrier of the program's own, over all members of many short regions: those that have not begun must begin.
static void all(void) {
  for (int region = 0; region < kRounds; region++) {
    atomic_long here = 0;
#pragma omp parallel
    {
      atomic_fetch_add(&here, 1);
      wait_for(&here, omp_get_num_threads());
    }
  }
}

/// One computes, the others wait for it; none gets less than it needs.
static void unequal(void) {
  atomic_long ready = 0;
  double result = 0;
#pragma omp parallel
  {
    if (omp_get_thread_num() == omp_get_num_threads() - 1) {
      double x = 1;
      for (int i = 0; i < 3000000; i++) x = x * 1.0000001 + 1e-9;
      result = x;
      atomic_store(&ready, 1);
    }
    wait_for(&ready, 1);
  }
  CHECK(result > 1, "%f", result);
}

/// A tied task that yields goes on before its thread begins another one.
static void tasks(void) {
  static int in_task[kMost];
  atomic_int mixed = 0, done = 0;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 300; i++)
#pragma omp task firstprivate(i)
  {
    const int me = omp_get_thread_num();
    in_task[me] = i + 1;
    for (int k = 0; k < 20; k++) give_up();
    if (me != omp_get_thread_num() || in_task[me] != i + 1) atomic_fetch_add(&mixed, 1);
    in_task[me] = 0;
    atomic_fetch_add(&done, 1);
  }
  CHECK(mixed == 0 && done == 300, "%d tasks were interrupted by others, %d done", mixed, done);
}

/// Each waits for the next one, which has to begin where the first one, who keeps its CPU, is not.
static void chain(void) {
  const int alone = omp_get_num_procs() == 1;
  long regions = 0;
  for (int region = 0; region < kRounds; region++) {
    atomic_long from = kMost;
#pragma omp parallel
    {
      const int me = omp_get_thread_num(), last = omp_get_num_threads() - 1;
      while (me != last && atomic_load_explicit(&from, memory_order_acquire) > me + 1)
        if (me != 0 || alone) give_up();
      atomic_store_explicit(&from, me, memory_order_release);
    }
    regions += atomic_load(&from) == 0;
  }
  CHECK(regions == kRounds, "%ld of %d chains came to their ends", regions, kRounds);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static atomic_int signals;
static void on_alarm(int number) {
  (void)number;
  for (int i = 0; i < 5; i++) give_up();
  atomic_fetch_add(&signals, 1);
}

/// Who is in a handler yields, too, and other members have their own masks and stacks meanwhile.
static void in_handlers(int flags) {
  static char room[65536];
#ifdef WITH_ALTERNATE_STACK  // else bosk would give each member a kernel thread, for the sake of this import
  const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
  CHECK(sigaltstack(&stack, NULL) == 0, "sigaltstack: %s", strerror(errno));
#else
  CHECK((flags & SA_ONSTACK) == 0, "%p: built without", room);
#endif
  struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags | SA_RESTART};
  sigfillset(&action.sa_mask);
  CHECK(sigaction(SIGALRM, &action, NULL) == 0, "sigaction: %s", strerror(errno));
  const struct itimerval often = {{0, 2000}, {0, 2000}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer: %s", strerror(errno));
  const double start = seconds();
  for (int i = 0; i < 20 || atomic_load(&signals) < 20; i++) {
    ring();
    // Who has inherited the handler's mask would never see another one.
    CHECK(seconds() - start < 60, "%d signals in %d rings and a minute", atomic_load(&signals), i);
  }
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
}

static void* yields_alone(void* argument) {
  for (int i = 0; i < 1000; i++)
    if (give_up() != 0) *(int*)argument = 1;
  return NULL;
}

/// Threads that are none of ours, before the first region and beside others.
static void foreign(void) {
  int failed = 0;
  for (int turn = 0; turn < 2; turn++) {
    pthread_t other;
    CHECK(pthread_create(&other, NULL, yields_alone, &failed) == 0, "pthread_create");
    ring();
    pthread_join(other, NULL);
    yields_alone(&failed);
  }
  CHECK(!failed, "sched_yield has failed");
}

static pid_t forked_child(void) {
  const pid_t forked = fork();
  if (forked != 0) return forked;
  for (int i = 0; i < 1000; i++) give_up();
  _exit(7);
}

/// It has the member's memory, and that is all that it has of it.
static pid_t vforked_child(void) {
  const pid_t forked = vfork();
  if (forked != 0) return forked;
  for (int i = 0; i < 100; i++) give_up();
  _exit(7);
}

/// In a child made inside of a region nobody else is there.
static void child(pid_t (*make)(void)) {
  atomic_int bad = 0;
#pragma omp parallel
  {
    for (int i = 0; i < 20; i++) give_up();
#pragma omp critical
    {
      const pid_t forked = make();
      int status = 0;
      if (forked < 0 || waitpid(forked, &status, 0) != forked || !WIFEXITED(status) ||
          WEXITSTATUS(status) != 7)
        atomic_fetch_add(&bad, 1);
    }
    for (int i = 0; i < 20; i++) give_up();
  }
  CHECK(bad == 0, "%d children did not end well", bad);
}

/// The other names of it, and values that members keep over a yield.
static void others(void) {
  atomic_long here = 0;
  atomic_int bad = 0;
#pragma omp parallel
  {
    const int me = omp_get_thread_num();
    volatile double kept = me * 1.5;
    errno = me + 1;
    atomic_fetch_add(&here, 1);
    while (atomic_load(&here) < omp_get_num_threads()) {
      thrd_yield();
      if (give_up() != 0) atomic_fetch_add(&bad, 1);
    }
    if (errno != me + 1 || kept != me * 1.5 || omp_get_thread_num() != me)
      atomic_fetch_add(&bad, 1);
  }
  CHECK(bad == 0, "%d members have lost something", bad);
}

/// Nobody comes back before his time, whoever ran meanwhile; wrong times are refused, long ones are slept.
static void early(void) {
  atomic_int bad = 0;
#pragma omp parallel
  for (int i = 0; i < 300; i++) {
    const struct timespec time = {0, i % 60 * 1000};
    const double start = seconds();
    if (nanosleep(&time, NULL) == 0 && seconds() - start < 1e-6 * (i % 60))
      atomic_fetch_add(&bad, 1);
    if (usleep(7) == 0 && seconds() - start < 7e-6) atomic_fetch_add(&bad, 1);
    const struct timespec wrong = {0, i % 2 ? -1 : 1000000000};
    errno = 0;
    if (nanosleep(&wrong, NULL) != -1 || errno != EINVAL) atomic_fetch_add(&bad, 1);
  }
  CHECK(bad == 0, "%d sleeps were too short, or right though they were wrong", bad);
  const double start = seconds();
  usleep(30000);
  CHECK(seconds() - start >= .03, "a sleep of 30 ms took %.3f s", seconds() - start);
}

static int sleep_again(struct timespec* time) { return nanosleep(time, time); }
static int sleep_by_clock(struct timespec* time) {
  return clock_nanosleep(CLOCK_MONOTONIC, 0, time, time);
}
static int sleep_by_c(struct timespec* time) { return thrd_sleep(time, time); }
/// Past libc, and without syscall(2), for whose sake members would get kernel threads.
static int sleep_by_number(struct timespec* time) {
#if defined(__x86_64__)
  long result = SYS_nanosleep;
  __asm__ volatile("syscall" : "+a"(result) : "D"(time), "S"(time) : "rcx", "r11", "memory");
  return (int)result;
#else
  return nanosleep(time, time);
#endif
}

/// Who asks for what is left where he says how long, as loops that go on after signals do, sleeps as long as he says, and says the same
/// the next time: beside members that compute, so that his thread is wanted meanwhile. By number that is put back for whom the runtime has
/// looked at while he slept, which is nearly everybody.
static void rest(void) {
  static int (*const ways[])(struct timespec*) = {sleep_again, sleep_by_clock, sleep_by_c,
                                                  sleep_by_number};
  enum { kNs = 15000000, kAboutNs = 1000000 };
  atomic_int bad = 0, asleep = 0, by_number = 0, changed = 0;
#pragma omp parallel
  for (int way = 0; way < 4; way++) {
    if (omp_get_thread_num() % 2 == 0) {
      atomic_fetch_add(&asleep, 1);
      struct timespec time = {0, kNs};
      int bad_sleeps = 0;
      for (int i = 0; i < 3; i++) {
        const long asked = time.tv_nsec;
        const double start = seconds();
        if (ways[way](&time) != 0 || seconds() - start < 1e-9 * (double)asked) bad_sleeps++;
        if (ways[way] != sleep_by_number) {
          if (time.tv_nsec != asked) bad_sleeps++;
          continue;
        }
        atomic_fetch_add(&by_number, 1);
        if (labs(time.tv_nsec - asked) > kAboutNs) atomic_fetch_add(&changed, 1);
      }
      atomic_fetch_add(&bad, bad_sleeps);
      atomic_fetch_sub(&asleep, 1);
    } else {
      const double until = seconds() + .02;
      while (seconds() < until && atomic_load(&asleep) != 0) {
      }
    }
#pragma omp barrier
  }
  CHECK(bad == 0, "%d sleeps were too short, or did not leave what was asked as it was", bad);
  CHECK(4 * changed <= by_number, "%d of %d sleeps by number left something else than was asked",
        changed, by_number);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const char* how = argc > 2 ? argv[2] : "yield";
  if (strcmp(how, "usleep") == 0) give_up = by_usleep;
  if (strcmp(how, "nanosleep") == 0) give_up = by_nanosleep;
  if (strcmp(how, "sleep") == 0) give_up = by_sleep;
  if (strcmp(mode, "ring") == 0) {
    ring();
  } else if (strcmp(mode, "stages") == 0) {
    stages();
  } else if (strcmp(mode, "all") == 0) {
    all();
  } else if (strcmp(mode, "inner") == 0) {
    inner();
  } else if (strcmp(mode, "chain") == 0) {
    chain();
  } else if (strcmp(mode, "unequal") == 0) {
    unequal();
  } else if (strcmp(mode, "tasks") == 0) {
    tasks();
  } else if (strcmp(mode, "handler") == 0) {
    in_handlers(0);
  } else if (strcmp(mode, "alternate") == 0) {
    in_handlers(SA_ONSTACK);
  } else if (strcmp(mode, "foreign") == 0) {
    foreign();
  } else if (strcmp(mode, "child") == 0) {
    child(forked_child);
  } else if (strcmp(mode, "vfork") == 0) {
    child(vforked_child);
  } else if (strcmp(mode, "others") == 0) {
    others();
  } else if (strcmp(mode, "early") == 0) {
    early();
  } else if (strcmp(mode, "rest") == 0) {
    rest();
  } else {
    fail_at(__LINE__, "usage: yields MODE");
  }
  puts("ok");
  return 0;
}
