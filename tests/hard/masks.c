// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each member sets a signal mask of its own, which stays its own: across barriers, singles, tasks, regions inside, and computing.
//   masks flat|nested [MEMBERS]
// With THREAD_DIRECTED the members' signals come by pthread_kill: a blocked one stays pending, and in that thread only.
#include "hard.h"

#include <pthread.h>

static const int kNumbers[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGUSR1,
                               SIGUSR2, SIGTERM, SIGWINCH, SIGURG};
enum { kCount = sizeof kNumbers / sizeof kNumbers[0], kRounds = 3 };

static volatile sig_atomic_t runs;
#pragma omp threadprivate(runs)

static void count_run(int number) {
  (void)number;
  ++runs;
}

static sigset_t pattern(int me) {
  sigset_t set;
  sigemptyset(&set);
  for (int bit = 0; bit < kCount; ++bit)
    if ((me + 1) * 37 >> bit & 1) sigaddset(&set, kNumbers[bit]);
  return set;
}

static void expect(const sigset_t* wanted, int me, const char* where) {
  sigset_t found;
  pthread_sigmask(SIG_SETMASK, NULL, &found);
  for (int number = 1; number < 65; ++number)
    CHECK(sigismember(&found, number) == sigismember(wanted, number),
          "%s: signal %d of member %d is %s", where, number, me,
          sigismember(&found, number) ? "blocked" : "not blocked");
}

/// A blocked signal that comes to this thread waits for it, and for nobody else.
static void pending(const sigset_t* mask, int me, pthread_t* threads, int team) {
  int number = 0;
  for (int bit = 0; bit < kCount; ++bit)
    if (sigismember(mask, kNumbers[bit]) == 1) number = kNumbers[bit];
  sigset_t set;
#ifdef THREAD_DIRECTED
  threads[omp_get_thread_num()] = pthread_self();
#pragma omp barrier
  const int next = (omp_get_thread_num() + 1) % team;
  const sigset_t others = pattern(me - omp_get_thread_num() + next);
  for (int bit = 0; bit < kCount; ++bit)
    if (sigismember(&others, kNumbers[bit]) == 1) {
      CHECK(pthread_kill(threads[next], kNumbers[bit]) == 0, "pthread_kill");
    }
#pragma omp barrier
  number = -1;
#else
  (void)threads;
  (void)team;
  if (number != 0) raise(number);
#endif
  runs = 0;
  compute(4);
#pragma omp barrier
  int expected = 0;
  CHECK(sigpending(&set) == 0, "sigpending: errno %d", errno);
  for (int bit = 0; bit < kCount; ++bit) {
    const int sent = number == -1 ? sigismember(mask, kNumbers[bit]) : kNumbers[bit] == number;
    expected += sent;
    CHECK(sigismember(&set, kNumbers[bit]) == sent, "signal %d of member %d is %s pending",
          kNumbers[bit], me, sent ? "not" : "wrongly");
  }
  CHECK(runs == 0, "%d blocked signals were handled in member %d", (int)runs, me);
#pragma omp barrier
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, NULL);
  CHECK(runs == expected, "%d of %d signals were handled when member %d unblocked them", (int)runs,
        expected, me);
  pthread_sigmask(SIG_SETMASK, mask, NULL);
}

static void member(int me, int inner_too, pthread_t* threads, int team) {
  const sigset_t mine = pattern(me);
  sigset_t before;
  CHECK(pthread_sigmask(SIG_SETMASK, &mine, &before) == 0, "pthread_sigmask");
  for (int round = 0; round < kRounds; ++round) {
    compute(5);
    expect(&mine, me, "after computing");
#pragma omp barrier
    expect(&mine, me, "after a barrier");
#pragma omp single
    {
      for (int i = 0; i < 2 * omp_get_num_threads(); ++i) {
#pragma omp task
        compute(.5);
      }
    }
    expect(&mine, me, "after tasks");
    if (inner_too) {
#pragma omp parallel num_threads(3)
      {
        if (omp_get_thread_num() == 0) expect(&mine, me, "in the region inside");
        compute(1);
#pragma omp barrier
        if (omp_get_thread_num() == 0) expect(&mine, me, "after the barrier inside");
      }
      expect(&mine, me, "after the region inside");
    }
    pending(&mine, me, threads, team);
    expect(&mine, me, "after signals");
  }
#pragma omp barrier
  expect(&mine, me, "at the end");
  CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0, "pthread_sigmask");
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const int members = argc > 2 ? atoi(argv[2]) : omp_get_max_threads();
  for (int i = 0; i < kCount; ++i) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = count_run;
    sigaction(kNumbers[i], &action, NULL);
  }
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  sigset_t at_start;
  pthread_sigmask(SIG_SETMASK, NULL, &at_start);
  if (is(mode, "flat")) {
    pthread_t* threads = calloc((size_t)members, sizeof *threads);
#pragma omp parallel num_threads(members)
    member(omp_get_thread_num(), members <= 16, threads, members);
    free(threads);
    // What member 0 sets is main's own, and stays.
    const sigset_t wanted = pattern(5);
#pragma omp parallel num_threads(members)
    if (omp_get_thread_num() == 0) pthread_sigmask(SIG_SETMASK, &wanted, NULL);
    expect(&wanted, 0, "after the region in which member 0 set it");
    pthread_sigmask(SIG_SETMASK, &at_start, NULL);
  } else if (is(mode, "nested")) {
    const int inner = members / 2 > 0 ? members / 2 : 1;
#pragma omp parallel num_threads(2)
    {
      const int outer = omp_get_thread_num();
      pthread_t* threads = calloc((size_t)inner, sizeof *threads);
#pragma omp parallel num_threads(inner)
      member(outer * inner + omp_get_thread_num(), inner <= 8, threads, inner);
      free(threads);
    }
  } else {
    no_such_mode();
  }
  expect(&at_start, 0, "at the end of main");
  return passed();
}
