// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A signal that the program blocks everywhere and takes with sigwait in one pthread: no worker of the
// runtime may have it unblocked (its default action would end the process).
#include "check.h"

#include <omp.h>
#include <pthread.h>

static int taken;
static int wanted;

static void* taker(void* argument) {
  sigset_t* set = argument;
  while (taken < wanted) {
    int number = 0;
    CHECK(sigwait(set, &number) == 0, "sigwait failed");
    CHECK(number == SIGUSR1 || number == SIGTERM, "sigwait took signal %d", number);
    __atomic_add_fetch(&taken, 1, __ATOMIC_ACQ_REL);
  }
  return NULL;
}

static void send_and_wait(int number) {
  int before = __atomic_load_n(&taken, __ATOMIC_ACQUIRE);
  CHECK(kill(getpid(), number) == 0, "kill: errno %d", errno);
  while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) == before) {
  }
}

static volatile unsigned long work;

static void busy(void) {
  for (int i = 0; i < 20000; ++i) work++;
}

/// The mask as the member sees it: what the opener had.
static void check_mask(const char* where) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, NULL, &now);
  CHECK(sigismember(&now, SIGUSR1) && sigismember(&now, SIGTERM),
        "%s: the mask of member %d lost a signal", where, omp_get_thread_num());
}

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  enum { kRounds = 40 };
  wanted = 3 * kRounds;
  pthread_t handle;
  CHECK(pthread_create(&handle, NULL, taker, &set) == 0, "pthread_create failed");
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  for (int round = 0; round < kRounds; ++round) {
    int threads = round % 2 ? 8 : 2;
    // From outside a region, with the workers idle.
    send_and_wait(round % 3 ? SIGUSR1 : SIGTERM);
#pragma omp parallel num_threads(threads)
    {
      check_mask("region");
      // From a member, the others compute, wait in a barrier, or run nested teams.
      if (omp_get_thread_num() == threads - 1)
        send_and_wait(SIGUSR1);
      else
        busy();
#pragma omp barrier
      check_mask("after a barrier");
#pragma omp parallel num_threads(3)
      {
        check_mask("nested region");
        busy();
      }
#pragma omp single
      {
        for (int i = 0; i < 16; ++i) {
#pragma omp task
          busy();
        }
        send_and_wait(SIGTERM);
      }
    }
    check_mask("after the region");
  }
  pthread_join(handle, NULL);
  CHECK(taken == wanted, "%d signals taken, %d sent", taken, wanted);
  return passed();
}
