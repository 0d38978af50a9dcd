// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Big automatic arrays in members (level 1 and nested) and in tasks: OMP_STACKSIZE counts for them all.
#include "check.h"

#include <omp.h>

/// Writes one word a page of an array of `megabytes` on the stack, blocks, and reads it back.
__attribute__((noinline)) static long use_stack(int megabytes, int me, int blocks) {
  size_t words = (size_t)megabytes * 1024 * 1024 / sizeof(long);
  volatile long array[words];
  for (size_t i = 0; i < words; i += 512) array[i] = (long)i + me;
  if (blocks) {
#pragma omp barrier
  }
  long wrong = 0;
  for (size_t i = 0; i < words; i += 512) wrong += array[i] != (long)i + me;
  return wrong;
}

static long deep(int depth, int me) {
  volatile char frame[16384];
  frame[0] = (char)me;
  frame[16383] = (char)depth;
  long below = depth > 0 ? deep(depth - 1, me) : 0;
  return below + (frame[0] != (char)me) + (frame[16383] != (char)depth);
}

int main(int argc, char** argv) {
  int megabytes = argc > 1 ? atoi(argv[1]) : 40;
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  for (int round = 0; round < 3; ++round) {
    long wrong = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
    if (omp_get_thread_num() > 0) {
      wrong += use_stack(megabytes, omp_get_thread_num(), 0);
      wrong += deep(megabytes * 60, omp_get_thread_num());
    }
    CHECK(wrong == 0, "level 1: %ld words of the arrays changed", wrong);
    // Nested members; the opener of a team is thread 0 of it, on a stack of the same size unless it is
    // the initial thread, whose stack is the process's.
#pragma omp parallel num_threads(3) reduction(+ : wrong)
    if (omp_get_thread_num() > 0) {
#pragma omp parallel num_threads(2) reduction(+ : wrong)
      wrong += use_stack(megabytes, omp_get_thread_num() * 10, 1);
    }
    CHECK(wrong == 0, "nested: %ld words of the arrays changed", wrong);
    // Tasks that members run while they wait, and tasks that block inside.
#pragma omp parallel num_threads(3) reduction(+ : wrong)
    {
      if (omp_get_thread_num() == 1) {
        for (int i = 0; i < 4; ++i) {
#pragma omp task shared(wrong) firstprivate(i) if (omp_get_thread_num() > 0)
          {
            long here = omp_get_thread_num() > 0 ? use_stack(megabytes / 4, i, 0) : 0;
#pragma omp task shared(wrong) firstprivate(i)
            {
              long child = omp_get_thread_num() > 0 ? use_stack(megabytes / 4, i, 0) : 0;
#pragma omp atomic
              wrong += child;
            }
#pragma omp taskwait
#pragma omp atomic
            wrong += here;
          }
        }
#pragma omp taskwait
      }
    }
    CHECK(wrong == 0, "tasks: %ld words of the arrays changed", wrong);
  }
  return passed();
}
