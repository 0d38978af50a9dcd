// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members hand over by spinning, in programs with signals of their own: no signal may be seen that the program did not send.
//   handover MODE [MEMBERS]; modes: plain nested masked masked_nested all all_nested own own_late own_ignored
//   sigwait by_33 limit_first limit_later
#include "hard.h"

#include <pthread.h>
#include <sys/resource.h>

static int members;
static int counts[65];

static void count_signal(int number, siginfo_t* info, void* context) {
  (void)context;
  CHECK(number != SIGSEGV && number != SIGBUS && number != SIGILL, "signal %d at %p", number,
        info->si_addr);
  __atomic_add_fetch(&counts[number], 1, __ATOMIC_ACQ_REL);
}

static void handle(int number) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = count_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  CHECK(sigaction(number, &action, NULL) == 0, "sigaction(%d): errno %d", number, errno);
}

static void none_pending(const char* where) {
  sigset_t set;
  CHECK(sigpending(&set) == 0, "sigpending: errno %d", errno);
  for (int number = 1; number < 65; ++number)
    CHECK(sigismember(&set, number) != 1, "%s: signal %d is pending", where, number);
}

/// A region whose members spin for one another, with all signals blocked if asked for.
static void region(int team, int masked, int* turn) {
#pragma omp parallel num_threads(team)
  {
    sigset_t all, before, after;
    sigfillset(&all);
    if (masked) CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0, "pthread_sigmask");
    hand_round(turn, omp_get_thread_num(), team, laps_for(members));
    if (masked) {
      none_pending("a member that blocks all");
      CHECK(pthread_sigmask(SIG_SETMASK, &before, &after) == 0, "pthread_sigmask");
      for (int number = 1; number < 65; ++number)
        CHECK(sigismember(&after, number) || number == SIGKILL || number == SIGSTOP ||
                  sigismember(&all, number) != 1,
              "signal %d is no longer blocked", number);
    }
  }
  CHECK(*turn == hops_of(team, laps_for(members)), "%d hops of %d", *turn,
        hops_of(team, laps_for(members)));
}

static void spin(int nested, int masked) {
  if (!nested) {
    int turn = 0;
    region(members, masked, &turn);
    return;
  }
  const int inner = members / 2 > 0 ? members / 2 : 1;
  int turns[2] = {0, 0};
#pragma omp parallel num_threads(2)
  region(inner, masked, &turns[omp_get_thread_num()]);
}

/// A handler for every signal: none is ever called.
static void all_handled(int nested) {
  for (int number = 1; number < 65; ++number)
    if (number != SIGKILL && number != SIGSTOP && number != 32 && number != 33) handle(number);
  spin(nested, 0);
  for (int number = 1; number < 65; ++number)
    CHECK(counts[number] == 0, "the handler of signal %d ran %d times", number, counts[number]);
}

/// The program's own real-time signal, sent while members spin.
static void own(int late) {
  enum { kSent = 200 };
  const int number = SIGRTMAX - 7;
  if (late) spin(0, 0);
  handle(number);
  int turn = 0;
#pragma omp parallel num_threads(members)
  {
    if (omp_get_thread_num() == members / 2) {
      for (int i = 0; i < kSent; ++i) {
        const union sigval value = {.sival_int = i};
#ifdef THREAD_DIRECTED
        CHECK(pthread_kill(pthread_self(), number) == 0, "pthread_kill");
        (void)value;
#else
        while (sigqueue(getpid(), number, value) != 0)
          CHECK(errno == EAGAIN, "sigqueue: errno %d", errno);
#endif
      }
    }
    hand_round(&turn, omp_get_thread_num(), members, laps_for(members));
  }
  while (__atomic_load_n(&counts[number], __ATOMIC_ACQUIRE) < kSent) {
  }
  spin(0, 0);
  CHECK(counts[number] == kSent, "%d signals of %d", counts[number], kSent);
  struct sigaction now_set;
  CHECK(sigaction(number, NULL, &now_set) == 0 && now_set.sa_sigaction == count_signal,
        "the handler is no longer the program's");
}

/// The same signal is ignored, then sent.
static void own_ignored(void) {
  const int number = SIGRTMAX - 7;
  signal(number, SIG_IGN);
  spin(0, 0);
  for (int i = 0; i < 100; ++i) kill(getpid(), number);
  spin(0, 0);
}

/// glibc's own signal, sent by number from outside of glibc: glibc takes no notice.
static void by_33(void) {
  spin(0, 0);
  if (members == 1) return;  // glibc has no handler before the first thread
  int turn = 0;
#pragma omp parallel num_threads(members)
  {
    if (omp_get_thread_num() == 0)
      for (int i = 0; i < 100; ++i) CHECK(kill(getpid(), 33) == 0, "kill: errno %d", errno);
    hand_round(&turn, omp_get_thread_num(), members, laps_for(members));
  }
  spin(1, 0);
}

static int taken, sent, sent_number;

static void* take(void* set) {
  for (;;) {
    int number = 0;
    CHECK(sigwait(set, &number) == 0, "sigwait");
    if (number == SIGTERM) return NULL;
    CHECK(taken < __atomic_load_n(&sent, __ATOMIC_ACQUIRE), "sigwait took signal %d; none was sent",
          number);
    CHECK(number == sent_number, "sigwait took signal %d, not %d", number, sent_number);
    __atomic_add_fetch(&taken, 1, __ATOMIC_ACQ_REL);
  }
}

/// All threads block all signals, one takes them by sigwait.
static void sigwait_all(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  pthread_t taker;
  CHECK(pthread_create(&taker, NULL, take, &all) == 0, "pthread_create");
  const int numbers[] = {SIGUSR1, SIGRTMIN + 3, SIGRTMAX - 7, SIGALRM, SIGRTMAX};
  int turn = 0;
#pragma omp parallel num_threads(members)
  {
    if (omp_get_thread_num() == 0) {
      for (int i = 0; i < 20; ++i) {
        sent_number = numbers[i % 5];
        __atomic_add_fetch(&sent, 1, __ATOMIC_ACQ_REL);
        CHECK(kill(getpid(), sent_number) == 0, "kill: errno %d", errno);
        while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < sent) {
        }
      }
    }
    hand_round(&turn, omp_get_thread_num(), members, laps_for(members));
  }
  spin(1, 0);
  none_pending("at the end");
  CHECK(taken == sent, "%d signals taken, %d sent", taken, sent);
  kill(getpid(), SIGTERM);
  pthread_join(taker, NULL);
}

/// The program allows itself no pending signal, before its first region or after it: nothing that it does needs one.
static void limit(int later) {
  if (later) {
    const int all = members;
    members = all > 2 ? 2 : 1;
    spin(0, 0);
    members = all;
  }
  const struct rlimit none = {0, 0};
  CHECK(setrlimit(RLIMIT_SIGPENDING, &none) == 0, "setrlimit: errno %d", errno);
  spin(0, 0);
  spin(1, 0);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  members = argc > 2 ? atoi(argv[2]) : omp_get_max_threads();
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  if (is(mode, "plain") || is(mode, "nested")) {
    spin(is(mode, "nested"), 0);
  } else if (is(mode, "masked") || is(mode, "masked_nested")) {
    spin(is(mode, "masked_nested"), 1);
  } else if (is(mode, "all") || is(mode, "all_nested")) {
    all_handled(is(mode, "all_nested"));
  } else if (is(mode, "own") || is(mode, "own_late")) {
    own(is(mode, "own_late"));
  } else if (is(mode, "own_ignored")) {
    own_ignored();
  } else if (is(mode, "by_33")) {
    by_33();
  } else if (is(mode, "limit_first") || is(mode, "limit_later")) {
    limit(is(mode, "limit_later"));
  } else if (is(mode, "sigwait")) {
    sigwait_all();
  } else {
    no_such_mode();
  }
  return passed();
}
