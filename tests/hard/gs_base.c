// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members keep a block of their own where GS points, as emulators and instrumenting tools do: it is theirs after computing and barriers.
//   gs_base flat|nested [MEMBERS]
#include "hard.h"

#include <asm/prctl.h>

extern int arch_prctl(int code, unsigned long address);

enum { kMost = 1024, kRounds = 6 };

static unsigned long blocks[kMost][8];

static unsigned long first_of_block(void) {
  unsigned long value;
  __asm__ volatile("mov %%gs:0, %0" : "=r"(value));
  return value;
}

static void member(int me) {
  unsigned long before;
  CHECK(arch_prctl(ARCH_GET_GS, (unsigned long)&before) == 0, "arch_prctl: errno %d", errno);
  blocks[me][0] = 1000UL + (unsigned long)me;
  CHECK(arch_prctl(ARCH_SET_GS, (unsigned long)blocks[me]) == 0, "arch_prctl: errno %d", errno);
  for (int round = 0; round < kRounds; ++round) {
    compute(8);
    const unsigned long found = first_of_block();
    CHECK(found == 1000UL + (unsigned long)me, "GS of member %d points to the block of %ld", me,
          (long)found - 1000);
#pragma omp barrier
    CHECK(first_of_block() == 1000UL + (unsigned long)me, "after a barrier GS of member %d differs",
          me);
  }
  arch_prctl(ARCH_SET_GS, before);
}

int main(int argc, char** argv) {
  CHECK(argc >= 2, "usage: gs_base flat|nested [MEMBERS]");
  const int members = argc > 2 ? atoi(argv[2]) : omp_get_max_threads();
  CHECK(members > 0 && 2 * members <= kMost, "%d members", members);
  if (strcmp(argv[1], "flat") == 0) {
#pragma omp parallel num_threads(members)
    member(omp_get_thread_num());
  } else {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
      const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(members)
      member(outer * members + omp_get_thread_num());
    }
  }
  return passed();
}
