// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// raise() in members: the handler has run, in this member, when raise() returns; and the process's alarm runs as a thread
// that has not blocked it.
//   raised flat|nested|alarm|alarm_nested [MEMBERS]
#include "hard.h"

#include <pthread.h>
#include <sys/time.h>

static volatile sig_atomic_t runs;
static volatile int member_number;
#pragma omp threadprivate(runs, member_number)
static pthread_t main_thread;
static volatile int alarms;

static void count_run(int number) {
  (void)number;
  ++runs;
}

static void members_raise(int me, int rounds) {
  member_number = me;
  runs = 0;
  for (int i = 0; i < rounds; ++i) {
    const int before = runs;
    CHECK(raise(SIGUSR1) == 0, "raise: errno %d", errno);
    CHECK(runs == before + 1, "raise %d returned to member %d, and its handler has run %d times", i,
          me, runs - before);
    delay_rounds(3000);
  }
  CHECK(member_number == me, "member %d has the data of member %d", me, member_number);
}

static void on_alarm(int number) {
  (void)number;
  CHECK(pthread_equal(pthread_self(), main_thread) && member_number == 1,
        "the alarm's handler runs as another thread than main, though only main has it unblocked");
  ++alarms;
}

static void block_alarm(int how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  CHECK(pthread_sigmask(how, &set, NULL) == 0, "pthread_sigmask");
}

/// An alarm every few milliseconds while more members spin than there are CPUs.
static void alarm_for_main(int members, int nested) {
  main_thread = pthread_self();
  member_number = 1;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  block_alarm(SIG_BLOCK);
  // The threads of the region inherit the mask.
  int turn = 0;
#pragma omp parallel num_threads(members)
  hand_round(&turn, omp_get_thread_num(), members, 1);
  block_alarm(SIG_UNBLOCK);
  const struct itimerval often = {{0, 3000}, {0, 3000}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer");
  const int rounds = members > 16 ? 1 : 3;
  for (int round = 0; round < rounds; ++round) {
    if (nested) {
      block_alarm(SIG_BLOCK);
      int turns[2] = {0, 0};
      const int inner = members / 2 > 0 ? members / 2 : 1;
#pragma omp parallel num_threads(2)
      {
        const int outer = omp_get_thread_num();
        // Threads that are made now inherit the mask.
#pragma omp parallel num_threads(inner)
        {
          if (pthread_equal(pthread_self(), main_thread))
            block_alarm(SIG_UNBLOCK);  // for good: until the next round
          else
            member_number = 2;
          compute(30.0 / members);
          hand_round(&turns[outer], omp_get_thread_num(), inner, 1);
        }
      }
    } else {
      turn = 0;
#pragma omp parallel num_threads(members)
      {
        if (omp_get_thread_num() != 0) member_number = 2;
        compute(30.0 / members);
        hand_round(&turn, omp_get_thread_num(), members, 1);
      }
    }
  }
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  CHECK(alarms > 0, "no alarm came");
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const int members = argc > 2 ? atoi(argv[2]) : omp_get_max_threads();
  const int rounds = 20000 / (members > 4 ? members : 4);
  signal(SIGUSR1, count_run);
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  if (is(mode, "flat")) {
#pragma omp parallel num_threads(members)
    members_raise(omp_get_thread_num(), rounds);
  } else if (is(mode, "nested")) {
    const int inner = members / 2 > 0 ? members / 2 : 1;
#pragma omp parallel num_threads(2)
    {
      const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(inner)
      members_raise(outer * inner + omp_get_thread_num(), rounds);
    }
  } else if (is(mode, "alarm") || is(mode, "alarm_nested")) {
    alarm_for_main(members, is(mode, "alarm_nested"));
  } else {
    no_such_mode();
  }
  return passed();
}
