// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Phases inside of one region, docs/memory.md: what members said last is what counts, and on one node nothing moves.
#include <bosk/hints.h>
#include <omp.h>

#include "fragment.h"

enum { MEMBERS = 4 };

int main(void) {
  omp_set_dynamic(0);
  const uint32_t steps = 10;
  const size_t row_bytes = 1 << 16;
  double* rows[MEMBERS];
  for (int i = 0; i < MEMBERS; i++) rows[i] = calloc(1, row_bytes);
#pragma omp parallel num_threads(MEMBERS)
  {
    for (int phase = 0; phase < 3; phase++) {
      double* my_new_rows = rows[(omp_get_thread_num() + phase) % MEMBERS];
#include "block.inc"
      uint64_t bytes = 0;
      EXPECT(bosk_footprint(BOSK_ME, &bytes, 1) == 1 && bytes == row_bytes);
      EXPECT(bosk_redecide(BOSK_AT_ONCE) == 0);
    }
    EXPECT(bosk_detach_all(BOSK_ME) == 0);
  }
  for (int i = 0; i < MEMBERS; i++) free(rows[i]);
  return 0;
}
