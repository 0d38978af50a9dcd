// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Regions that are opened on a small stack of the program's making. Member 0 is the opener and stays on it; the
// others are threads and have a whole stack each, of which every one uses half a mebibyte here.
//   foreign_stacks main|member|thread|signal|limit|early-limit MEMBERS
//     main, member, thread   a coroutine, in the initial thread, in every member of a team, in a POSIX thread
//     signal                 a handler on an alternate stack, run by raise(), in the initial thread and in another
//     limit, early-limit     no small stack: the initial thread's own, whose limit the program has lowered, after
//                            its first region or before it
#include "check.h"

#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

enum { kSmall = 48 * 1024, kGuard = 512 * 1024, kUses = 512 * 1024, kMost = 64, kCoroutines = 4 };

static int members;

static struct Coroutine {
  ucontext_t outside, inside;
  char* stack;
} coroutines[kCoroutines];

/// A stack with more than kUses of no access below it and above, so that who oversteps it is found out.
static char* small_stack(void) {
  char* map = mmap(NULL, 2 * kGuard + kSmall, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED, "mmap: errno %d", errno);
  CHECK(mprotect(map + kGuard, kSmall, PROT_READ | PROT_WRITE) == 0, "mprotect: errno %d", errno);
  return map + kGuard;
}

static __attribute__((noinline)) long use_stack(int seed) {
  volatile char room[kUses];
  long sum = 0;
  for (size_t i = 0; i < sizeof room; i += 1024) room[i] = (char)(seed + (int)(i >> 10));
#pragma omp flush
  for (size_t i = 0; i < sizeof room; i += 1024) sum += room[i] == (char)(seed + (int)(i >> 10));
  return sum;
}

/// Teams without barriers, which whoever opened them may run in its join, and with one.
static void regions(void) {
  for (int round = 0; round < 20; ++round) {
    long kept = 0;
    int numbers = 0;
#pragma omp parallel num_threads(members) reduction(+ : kept, numbers)
    {
      const int me = omp_get_thread_num();
      if (me != 0) kept += use_stack(me + round);
      if (round % 2) {
#pragma omp barrier
        if (me != 0) kept += use_stack(me);
      }
      numbers += me;
    }
    const long want = (1 + round % 2) * (members - 1) * (long)(kUses / 1024);
    CHECK(kept == want, "round %d: %ld of %ld values are still on their stacks", round, kept, want);
    CHECK(numbers == members * (members - 1) / 2, "round %d: the numbers' sum is %d", round,
          numbers);
  }
}

static void coroutine(int number) {
  struct Coroutine* self = &coroutines[number];
  regions();
  swapcontext(&self->inside, &self->outside);
  regions();
}

/// Its stack was there before any thread, so that it lies above all of theirs.
static void run_coroutine(int number) {
  struct Coroutine* self = &coroutines[number];
  CHECK(getcontext(&self->inside) == 0, "getcontext: errno %d", errno);
  self->inside.uc_stack.ss_sp = self->stack;
  self->inside.uc_stack.ss_size = kSmall;
  self->inside.uc_link = &self->outside;
  makecontext(&self->inside, (void (*)(void))coroutine, 1, number);
  swapcontext(&self->outside, &self->inside);
  regions();  // on the thread's own stack, in between
  swapcontext(&self->outside, &self->inside);
}

static void* thread_main(void* function) {
  omp_set_max_active_levels(3);
  ((void (*)(int))function)(0);
  return NULL;
}

static void run_in_thread(void (*function)(int)) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, thread_main, (void*)function) == 0, "pthread_create");
  CHECK(pthread_join(thread, NULL) == 0, "pthread_join");
}

static void on_signal(int number) {
  (void)number;
  regions();
}

#ifdef WITH_SIGNAL
static void run_in_handler(int number) {
  stack_t stack = {.ss_sp = coroutines[number].stack, .ss_size = kSmall};
  CHECK(sigaltstack(&stack, NULL) == 0, "sigaltstack: errno %d", errno);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction: errno %d", errno);
  for (int i = 0; i < 3; ++i) raise(SIGUSR1);
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 0) raise(SIGUSR1);
  stack.ss_flags = SS_DISABLE;
  CHECK(sigaltstack(&stack, NULL) == 0, "sigaltstack: errno %d", errno);
}
#else
static void run_in_handler(int number) {
  (void)on_signal;
  (void)number;
  CHECK(0, "built without -DWITH_SIGNAL");
}
#endif

static void lower_limit(void) {
  struct rlimit limit;
  CHECK(getrlimit(RLIMIT_STACK, &limit) == 0, "getrlimit: errno %d", errno);
  limit.rlim_cur = 192 * 1024;
  CHECK(setrlimit(RLIMIT_STACK, &limit) == 0, "setrlimit: errno %d", errno);
}

int main(int argc, char** argv) {
  CHECK(argc == 3, "foreign_stacks MODE MEMBERS");
  const char* mode = argv[1];
  members = atoi(argv[2]);
  CHECK(members > 0 && members <= kMost, "%d members", members);
  omp_set_max_active_levels(3);
  for (int i = 0; i < kCoroutines; ++i) coroutines[i].stack = small_stack();
  if (!strcmp(mode, "main")) {
    run_coroutine(0);
  } else if (!strcmp(mode, "member")) {
#pragma omp parallel num_threads(kCoroutines)
    run_coroutine(omp_get_thread_num());
  } else if (!strcmp(mode, "thread")) {
    run_in_thread(run_coroutine);
  } else if (!strcmp(mode, "signal")) {
    run_in_handler(0);
    run_in_thread(run_in_handler);
  } else if (!strcmp(mode, "limit")) {
#pragma omp parallel num_threads(2)
    {
    }
    lower_limit();
    regions();
  } else if (!strcmp(mode, "early-limit")) {
    lower_limit();
    regions();
  } else {
    CHECK(0, "no such mode: %s", mode);
  }
  return 0;
}
