// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of teams and members, docs/memory.md: each is attached to whom the page says.
#include <bosk/hints.h>
#include <omp.h>

#include "fragment.h"

enum { MEMBERS = 4 };

static double* some(size_t bytes) { return calloc(1, bytes); }

int main(void) {
  omp_set_dynamic(0);
  omp_set_num_threads(MEMBERS);
  omp_set_max_active_levels(2);
  const int columns = 5000;
  const uint32_t steps = 10;
  const size_t bytes = 1 << 20, halo_bytes = 1 << 16, row_bytes = columns * sizeof(double);
  double *grid = some(bytes), *halo = some(halo_bytes), *rows[MEMBERS];
  for (int i = 0; i < MEMBERS; i++) rows[i] = some(row_bytes);
#include "block.inc"
  for (int i = 0; i < MEMBERS; i++) {
    for (int column = 0; column < columns; column++) EXPECT(rows[i][column] == 1);
    EXPECT(bosk_detach(i, rows[i]) == 0);
  }
  EXPECT(bosk_detach(2, halo) == 0);
  EXPECT(bosk_detach(1, halo) == BOSK_ENOAREA);
  EXPECT(bosk_detach(BOSK_NEXT_TEAM, grid) == 0);
  return 0;
}
