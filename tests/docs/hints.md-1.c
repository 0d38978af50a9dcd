// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Zones with loads, docs/hints.md: every member tells its own, and its team has all rows.
#include <bosk/hints.h>
#include <omp.h>

#include "fragment.h"

enum { ZONES = 3, MOST_ROWS = 30 };

struct zone {
  int rows;
  int done[MOST_ROWS];
  long told;
};

static struct zone zone[ZONES];
static const int zones = ZONES;

static long points_of(const struct zone* one) { return 10L * one->rows; }
static void advance(struct zone* one, int row) { one->done[row] += omp_get_level() == 2; }

static int tell(long load) {
  zone[omp_get_thread_num()].told = load;
  return bosk_set_load(load);
}
#undef bosk_set_load
#define bosk_set_load(load) EXPECT(tell(load) == 0)

int main(void) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  for (int i = 0; i < ZONES; i++) zone[i].rows = 10 * (i + 1);
#include "block.inc"
  for (int i = 0; i < ZONES; i++) {
    EXPECT(zone[i].told == 100L * (i + 1));
    for (int row = 0; row < MOST_ROWS; row++) EXPECT(zone[i].done[row] == (row < zone[i].rows));
  }
  return 0;
}
