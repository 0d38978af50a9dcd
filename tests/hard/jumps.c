// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A handler of SIGALRM jumps out of a computation, many times, beside members that spin for one another.
//   jumps main|member|nested|before [MEMBERS]
#include "hard.h"

#include <setjmp.h>
#include <sys/time.h>

static int jumps = 60;

static sigjmp_buf target;
static volatile sig_atomic_t armed;

static void jump(int number) {
  (void)number;
  if (!armed) return;
  armed = 0;
  siglongjmp(target, 1);
}

static void alarm_blocked(int how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  CHECK(pthread_sigmask(how, &set, NULL) == 0, "pthread_sigmask");
}

/// Computations without end, each left by the handler.
static void computations(void) {
  volatile int left = 0;
  alarm_blocked(SIG_UNBLOCK);
  while (left < jumps) {
    if (sigsetjmp(target, 1) == 0) {
      armed = 1;
      const struct itimerval once = {{0, 0}, {0, 2000 + left % 7 * 1500}};
      CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0, "setitimer: errno %d", errno);
      for (;;) compute(50);
    }
    ++left;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number < 65; ++number)
      CHECK(sigismember(&mask, number) != 1, "signal %d is blocked after jump %d", number, left);
  }
  alarm_blocked(SIG_BLOCK);
}

/// One member computes, the others hand over meanwhile; at last all hand over, the first one too.
static void region(int team, int jumper) {
  int turn = 0, last = 0, ended = 0;
  const int others = team - 1;
#pragma omp parallel num_threads(team)
  {
    const int me = omp_get_thread_num();
    if (me == jumper) {
      computations();
      __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    } else {
      const int mine = me > jumper ? me - 1 : me;
      // Whose turn it is goes on until it finds the end; the others see it, too.
      for (int next = mine; !__atomic_load_n(&ended, __ATOMIC_ACQUIRE); next += others) {
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != next &&
               !__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {
        }
        if (__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) break;
        __atomic_store_n(&turn, next + 1, __ATOMIC_RELEASE);
      }
    }
    hand_round(&last, me, team, laps_for(team));
  }
  CHECK(last == hops_of(team, laps_for(team)), "%d hops", last);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const int members = argc > 2 ? atoi(argv[2]) : omp_get_max_threads();
  if (members > 16) jumps = 12;  // the others take nearly all of the CPUs
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = jump;
  sigaction(SIGALRM, &action, NULL);
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  // The process's alarm must come to who computes.
  alarm_blocked(SIG_BLOCK);
  if (is(mode, "main")) {
    region(members, 0);
  } else if (is(mode, "member")) {
    region(members, members - 1);
  } else if (is(mode, "nested")) {
    int turn = 0;
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
      region(members, members - 1);
    } else {
#pragma omp parallel num_threads(members)
      hand_round(&turn, omp_get_thread_num(), members, laps_for(members));
    }
  } else if (is(mode, "before")) {
    // Beside an idle team; then regions as ever.
    for (int i = 0; i < 3; ++i) {
      int turn = 0;
      computations();
#pragma omp parallel num_threads(members)
      hand_round(&turn, omp_get_thread_num(), members, laps_for(members));
    }
  } else {
    no_such_mode();
  }
  return passed();
}
