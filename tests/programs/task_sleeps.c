// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A task that spins for another one which sleeps in the kernel, while the other members of the team spin
// for it, too. On fewer CPUs than members the runtime must set the spinning task aside although other
// threads are ready, and then the sleeping one, which runs under the same identity.
#include "check.h"

#include <omp.h>
#include <time.h>

enum { kSleeps = 12 };
static int flag;

__attribute__((noinline)) static void wait_for_flag(void) {
  while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE)) {
  }
}

static void sleep_and_raise(void) {
  for (int i = 0; i < kSleeps; ++i) {
    const struct timespec a_while = {0, 3000000};
    nanosleep(&a_while, NULL);
  }
  __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 2, rounds = argc > 2 ? atoi(argv[2]) : 5;
  for (int round = 0; round < rounds; ++round) {
    int done = 0;
    flag = 0;
#pragma omp parallel num_threads(threads)
    if (omp_get_thread_num() == 0) {
#pragma omp task shared(done)
      {
        sleep_and_raise();
#pragma omp atomic
        done++;
      }
#pragma omp task shared(done)
      {
        wait_for_flag();
#pragma omp atomic
        done++;
      }
#pragma omp taskwait
    } else {
      wait_for_flag();
    }
    CHECK(done == 2, "round %d: %d of 2 tasks ran", round, done);
  }
  return passed();
}
