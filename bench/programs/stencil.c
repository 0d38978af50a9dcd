// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Heat conduction and advection on a mesh in stripes (Thibault 2005, table 2), in the three versions that are
// compared there. Simple: as many stripes as processors, one flat team; where its threads run is up to
// whoever schedules them. Bound: the same program under OMP_PROC_BIND. Bubbles: a team of groups, each of
// which opens a team of its own, so that neighbours are told apart from strangers.
//
// A unit of work is one run of kSteps steps; every run must give the values of the sequential one, to the bit. Rows of the
// mesh are touched first by those who work on them. Where BOSK_LAB_OBJECTS names a file, it gets a line for each mesh, and one
// run is counted (bosk lab --locality=objects, docs/locality.md).
//
// STENCIL_ROWS: default 256.
#include <math.h>
#include <omp.h>
#include <sys/mman.h>

#include <bosk/markers.h>

#include "bench.h"

enum { kColumns = 254, kPitch = kColumns + 2, kSteps = 20 };
typedef double Row[kPitch];

static int rows;
static Row* mesh[2];
static Row* expected;
static int groups, per_group;

static size_t mesh_bytes(void) { return (size_t)(rows + 2) * sizeof(Row); }

static Row* map_mesh(void) {
  void* made = mmap(NULL, mesh_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) bench_fail("stencil: out of memory");
  return made;
}

static void start_row(Row* to, int row) {
  for (int c = 0; c < kPitch; c++) {
    const double x = (double)c / (kPitch - 1), y = (double)row / (rows + 1);
    to[row][c] = x + exp(-80 * ((x - 0.3) * (x - 0.3) + (y - 0.6) * (y - 0.6)));
  }
}

static void conduct_row(const Row* from, Row* to, int row) {
  const double *above = from[row - 1], *here = from[row], *below = from[row + 1];
  for (int c = 1; c <= kColumns; c++)
    to[row][c] = here[c] + 0.12 * (above[c] + below[c] + here[c - 1] + here[c + 1] - 4 * here[c]);
}

/// Second-order upwind in both directions, with a limiter: more work for each value, as in the paper.
static double limited(double before, double after) {
  const double product = before * after;
  return product > 0 ? 2 * product / (before + after) : 0;
}

static void advect_row(const Row* from, Row* to, int row) {
  const double *above = from[row - 1], *here = from[row], *below = from[row + 1];
  for (int c = 1; c <= kColumns; c++) {
    const double slope_x = limited(here[c] - here[c - 1], here[c + 1] - here[c]);
    const double slope_y = limited(here[c] - above[c], below[c] - here[c]);
    to[row][c] = here[c] - 0.21 * (here[c] - here[c - 1] + 0.4 * slope_x) -
                 0.13 * (here[c] - above[c] + 0.4 * slope_y);
  }
}

static void (*work_on)(const Row* from, Row* to, int row);

static void sequential(void) {
  for (int m = 0; m < 2; m++)
    for (int row = 0; row < rows + 2; row++) start_row(mesh[m], row);
  for (int step = 0; step < kSteps; step++)
    for (int row = 1; row <= rows; row++) work_on(mesh[step % 2], mesh[(step + 1) % 2], row);
}

static void flat(void) {
#pragma omp parallel num_threads(groups* per_group)
  {
#pragma omp for schedule(static)
    for (int row = 0; row < rows + 2; row++) {
      start_row(mesh[0], row);
      start_row(mesh[1], row);
    }
    for (int step = 0; step < kSteps; step++) {
#pragma omp for schedule(static)
      for (int row = 1; row <= rows; row++) work_on(mesh[step % 2], mesh[(step + 1) % 2], row);
    }
  }
}

static void nested(void) {
#pragma omp parallel num_threads(groups)
  {
    const int group = omp_get_thread_num();
    const int first = 1 + rows * group / groups, last = rows * (group + 1) / groups;
#pragma omp parallel for schedule(static) num_threads(per_group)
    for (int row = first - (group == 0); row <= last + (group == groups - 1); row++) {
      start_row(mesh[0], row);
      start_row(mesh[1], row);
    }
#pragma omp barrier
    for (int step = 0; step < kSteps; step++) {
#pragma omp parallel for schedule(static) num_threads(per_group)
      for (int row = first; row <= last; row++) work_on(mesh[step % 2], mesh[(step + 1) % 2], row);
#pragma omp barrier
    }
  }
}

static void (*version)(void);

static double run(void* unused, long count) {
  (void)unused;
  double took = 0;
  for (long i = 0; i < count; i++) {
    const double start = now_ns();
    version();
    took += now_ns() - start;
    if (memcmp(mesh[kSteps % 2], expected, mesh_bytes()) != 0)
      bench_fail("stencil: the values differ from the sequential ones");
  }
  return took;
}

static void make_meshes(void) {
  const char* text = getenv("STENCIL_ROWS");
  rows = text != NULL && atoi(text) > 0 ? atoi(text) : 256;
  for (int m = 0; m < 2; m++) mesh[m] = map_mesh();
  sequential();
  expected = mesh[kSteps % 2];
  // Those have been touched by one thread.
  munmap(mesh[(kSteps + 1) % 2], mesh_bytes());
  for (int m = 0; m < 2; m++) mesh[m] = map_mesh();
}

static void count_one_run(const char* objects) {
  FILE* file = fopen(objects, "a");
  if (file == NULL) bench_fail("stencil: BOSK_LAB_OBJECTS names a file that cannot be written");
  for (int m = 0; m < 2; m++) fprintf(file, "%p %zu mesh %d\n", (void*)mesh[m], mesh_bytes(), m);
  fclose(file);
  BOSK_LAB_MARK(BOSK_LAB_OBJECTS);
  BOSK_LAB_MARK(BOSK_LAB_BEGIN);
  version();
  BOSK_LAB_MARK(BOSK_LAB_END);
  if (memcmp(mesh[kSteps % 2], expected, mesh_bytes()) != 0)
    bench_fail("stencil: the values differ from the sequential ones");
}

int main(int argc, char** argv) {
  static void (*const kVersions[])(void) = {sequential, flat, flat, nested};
  static const char* const kNames[] = {"sequential", "simple", "bound", "bubbles"};
  if (argc < 4) bench_fail("stencil CASE GROUPS THREADS; see rows.py for the cases");
  groups = bench_int(argc, argv, 2);
  per_group = bench_int(argc, argv, 3);
  const char* dash = strchr(argv[1], '-');
  if (dash != NULL && strncmp(argv[1], "conduction-", 11) == 0)
    work_on = conduct_row;
  else if (dash != NULL && strncmp(argv[1], "advection-", 10) == 0)
    work_on = advect_row;
  else
    bench_fail("stencil: no such case");
  omp_set_max_active_levels(2);
  make_meshes();
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; i++) {
    if (strcmp(dash + 1, kNames[i]) != 0) continue;
    version = kVersions[i];
    if (getenv("BOSK_LAB_OBJECTS") != NULL) {
      count_one_run(getenv("BOSK_LAB_OBJECTS"));
      return 0;
    }
    bench_print(argv[1], bench_measure(run, NULL) / 1e6, "ms");
    return 0;
  }
  bench_fail("stencil: no such case");
}
