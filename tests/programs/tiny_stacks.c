// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMP_STACKSIZE=16k, as little as POSIX allows, and 1,000 members that need their stacks at the same time.
#include "check.h"

#include <omp.h>

static int members(int threads, int levels) {
  int sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  {
    volatile char frame[1024];
    frame[0] = 1;
    frame[sizeof frame - 1] = (char)omp_get_thread_num();
    if (levels > 1)
      sum += members(threads, levels - 1);
    else
      sum++;
#pragma omp barrier
    CHECK(frame[0] == 1 && frame[sizeof frame - 1] == (char)omp_get_thread_num(),
          "the frame of member %d was overwritten", omp_get_thread_num());
  }
  return sum;
}

#ifdef NATIVE
#include <sched.h>
/// A program that imports this gets a kernel thread for every member, which then all want to help others.
int pin(const cpu_set_t* set);
int pin(const cpu_set_t* set) { return sched_setaffinity(0, sizeof *set, set); }
#endif

int main(void) {
  const char* size = getenv("OMP_STACKSIZE");
  CHECK(size && !strcmp(size, "16k"), "OMP_STACKSIZE is not 16k");
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  CHECK(members(1000, 1) == 1000, "a smaller team");
  CHECK(members(7, 3) == 343, "a smaller nested team");
  CHECK(members(10, 2) == 100, "a smaller nested team");
  return passed();
}
