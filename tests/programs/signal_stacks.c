// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Signal handlers in members: on alternate stacks of their own, from a profiling timer, and sent from
// one member to another while it computes, waits in the runtime, or allocates memory.
//   signal_stacks altstack|profile|storm MEMBERS
#include "check.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/time.h>

enum { kMaxMembers = 64, kStack = 64 * 1024 };

static char* stacks[kMaxMembers];
static pthread_t handles[kMaxMembers];
static int on_stack[kMaxMembers];  ///< signals handled on the member's own alternate stack
static int elsewhere;              ///< … on any other
static int handled;
static __thread int my_number = -1;

static volatile unsigned long spun;

static void on_signal(int number) {
  (void)number;
  int saved = errno;
  // A sanitizer may keep local variables elsewhere.
  char* here = __builtin_frame_address(0);
  int me = my_number;
  if (me >= 0 && stacks[me] && here > stacks[me] && here < stacks[me] + kStack)
    __atomic_add_fetch(&on_stack[me], 1, __ATOMIC_RELAXED);
  else
    __atomic_add_fetch(&elsewhere, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&handled, 1, __ATOMIC_RELEASE);
  errno = saved;
}

static void handle(int number, int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | flags;
  CHECK(sigaction(number, &action, NULL) == 0, "sigaction: errno %d", errno);
}

/// Every member has a stack for its handlers and finds its own in every region; a signal runs there.
static void alternate_stacks(int members) {
  handle(SIGUSR1, SA_ONSTACK);
  for (int i = 0; i < members; ++i) stacks[i] = malloc(kStack);
#pragma omp parallel num_threads(members)
  {
    my_number = omp_get_thread_num();
    stack_t stack = {.ss_sp = stacks[my_number], .ss_size = kStack};
    CHECK(sigaltstack(&stack, NULL) == 0, "sigaltstack: errno %d", errno);
    handles[my_number] = pthread_self();
  }
  for (int round = 0; round < 20; ++round) {
#pragma omp parallel num_threads(members)
    {
      int me = omp_get_thread_num();
      CHECK(my_number == me, "member %d is thread %d", me, my_number);
      stack_t stack;
      CHECK(sigaltstack(NULL, &stack) == 0 && stack.ss_sp == stacks[me],
            "member %d lost its alternate stack", me);
      int before = on_stack[me];
      raise(SIGUSR1);
      CHECK(on_stack[me] > before, "member %d: the handler ran elsewhere", me);
#pragma omp barrier
      // The neighbour's, while that waits for this one.
      int other = (me + 1) % members;
      before = __atomic_load_n(&on_stack[other], __ATOMIC_ACQUIRE);
#pragma omp barrier
      CHECK(pthread_kill(handles[other], SIGUSR1) == 0, "pthread_kill failed");
      while (__atomic_load_n(&on_stack[other], __ATOMIC_ACQUIRE) == before) sched_yield();
#pragma omp barrier
      for (int i = 0; i < 1000; ++i) spun++;
    }
  }
  CHECK(elsewhere == 0, "%d handlers ran on other stacks", elsewhere);
#pragma omp parallel num_threads(members)
  {
    stack_t none = {.ss_flags = SS_DISABLE};
    CHECK(sigaltstack(&none, NULL) == 0, "sigaltstack: errno %d", errno);
  }
}

static unsigned long fib(int n) {
  if (n < 2) return (unsigned long)n;
  unsigned long a, b;
#pragma omp task shared(a) if (n > 8)
  a = fib(n - 1);
#pragma omp task shared(b) if (n > 8)
  b = fib(n - 2);
#pragma omp taskwait
  return a + b;
}

/// Everything that the runtime does, once.
static void all_constructs(int members) {
  long sum = 0;
  unsigned long result = 0;
#pragma omp parallel num_threads(members) reduction(+ : sum)
  {
    errno = 1000 + omp_get_thread_num();
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 100; ++i) sum += i;
    char* block = malloc((size_t)(omp_get_thread_num() + 1) * 100);
    memset(block, 1, 100);
#pragma omp critical
    sum += 1000;
#pragma omp single
    result = fib(14);
    free(block);
#pragma omp parallel num_threads(2) reduction(+ : sum)
    {
#pragma omp barrier
      sum += 10000;
    }
    CHECK(errno == 1000 + omp_get_thread_num(), "errno of member %d is %d", omp_get_thread_num(),
          errno);
  }
  CHECK(sum == 4950 + members * 21000L && result == 377, "sum %ld, fib(14) = %lu", sum, result);
}

static void profile(int members) {
  handle(SIGPROF, 0);
  handle(SIGVTALRM, SA_ONSTACK);
  struct itimerval period = {{0, 1000}, {0, 1000}};
  CHECK(setitimer(ITIMER_PROF, &period, NULL) == 0, "setitimer: errno %d", errno);
  CHECK(setitimer(ITIMER_VIRTUAL, &period, NULL) == 0, "setitimer: errno %d", errno);
  // As long as it takes to get a fair number of samples.
  while (__atomic_load_n(&handled, __ATOMIC_ACQUIRE) < 200) all_constructs(members);
  memset(&period, 0, sizeof period);
  setitimer(ITIMER_PROF, &period, NULL);
  setitimer(ITIMER_VIRTUAL, &period, NULL);
}

static int stop;

static void* shoot(void* unused) {
  (void)unused;
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    kill(getpid(), SIGUSR1);
    pthread_kill(*(pthread_t*)handles, SIGUSR2);
    usleep(200);
  }
  return NULL;
}

/// Signals for the process, which any thread may take, and for its main thread.
static void storm(int members) {
  handle(SIGUSR1, 0);
  handle(SIGUSR2, 0);
  handles[0] = pthread_self();
  pthread_t shooter;
  CHECK(pthread_create(&shooter, NULL, shoot, NULL) == 0, "pthread_create failed");
  for (int round = 0; round < 30 || __atomic_load_n(&handled, __ATOMIC_ACQUIRE) < 300; ++round)
    all_constructs(members);
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  pthread_join(shooter, NULL);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  int members = argc > 2 ? atoi(argv[2]) : 2;
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  if (!strcmp(mode, "altstack"))
    alternate_stacks(members);
  else if (!strcmp(mode, "profile"))
    profile(members);
  else if (!strcmp(mode, "storm"))
    storm(members);
  else
    fail_at(__LINE__, "unknown mode %s", mode);
  return passed();
}
