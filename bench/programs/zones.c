// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Irregular zones (2007, section 4): a mesh in 4 x 4 zones, the largest 25 times the smallest, each cut
// into planes. The outer team shares out the zones, inner teams the planes of one; "told" says to bosk
// with one line how much each outer thread has. Every case must give the sequential run's numbers.
//
//   zones sequential | outer N | inner N | nested N M | told N M     ms of one time step
//
// Planes are touched first by those who work on them. Where BOSK_LAB_OBJECTS names a file, it gets a line for each zone, and a
// few steps are counted (bosk lab --locality=objects, docs/locality.md).
#include <omp.h>
#include <sys/mman.h>

#include <bosk/hints.h>
#include <bosk/markers.h>

#include "bench.h"

enum { kSide = 4, kZones = kSide * kSide, kPlanes = 16, kMesh = 160 };

typedef struct {
  int nx, ny;
  double *now, *next;  // kPlanes planes of ny lines of nx points
  double face;         // what its neighbours see of it
} Zone;

typedef struct {
  int outer, inner, told;
} Shape;

static Zone zones[kZones];

/// Sides in a geometric row whose ends are 1 : 5, so areas from 1 to 25.
static void cut_mesh(int lengths[kSide]) {
  const double ratio = 1.7099759466766968;  // 5^(1/3)
  double sum = 0, part = 1;
  for (int i = 0; i < kSide; i++, part *= ratio) sum += part;
  part = 1;
  for (int i = 0; i < kSide; i++, part *= ratio) lengths[i] = (int)(kMesh * part / sum + 0.5);
}

static long points_of(const Zone* zone) { return (long)zone->nx * zone->ny * kPlanes; }

static size_t bytes_of(const Zone* zone) { return (size_t)points_of(zone) * sizeof(double); }

static double* map_points(long points) {
  void* made = mmap(NULL, (size_t)points * sizeof(double), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) bench_fail("zones: out of memory");
  return made;
}

static void make_zones(void) {
  int lengths[kSide];
  cut_mesh(lengths);
  for (int z = 0; z < kZones; z++) {
    Zone* zone = &zones[z];
    zone->nx = lengths[z % kSide];
    zone->ny = lengths[z / kSide];
    zone->now = map_points(points_of(zone));
    zone->next = map_points(points_of(zone));
  }
}

/// Whoever touches them next touches them first.
static void forget_zones(void) {
  for (int z = 0; z < kZones; z++) {
    madvise(zones[z].now, bytes_of(&zones[z]), MADV_DONTNEED);
    madvise(zones[z].next, bytes_of(&zones[z]), MADV_DONTNEED);
  }
}

static void start_planes(Zone* zone, int z) {
  const long plane = (long)zone->nx * zone->ny;
#pragma omp for schedule(static)
  for (int k = 0; k < kPlanes; k++)
    for (long i = k * plane; i < (k + 1) * plane; i++) {
      zone->now[i] = (double)((i * 7 + z) % 11);
      zone->next[i] = 0;
    }
}

/// One plane of the next state, from the zone's present one and its neighbours' faces.
static void relax(const Zone* zone, int k, double west, double east) {
  const int nx = zone->nx, ny = zone->ny;
  const double* below = zone->now + (long)((k + kPlanes - 1) % kPlanes) * nx * ny;
  const double* here = zone->now + (long)k * nx * ny;
  const double* above = zone->now + (long)((k + 1) % kPlanes) * nx * ny;
  double* to = zone->next + (long)k * nx * ny;
  for (int j = 0; j < ny; j++) {
    const double* line = here + (long)j * nx;
    const double* north = here + (long)(j > 0 ? j - 1 : ny - 1) * nx;
    const double* south = here + (long)(j < ny - 1 ? j + 1 : 0) * nx;
    for (int i = 0; i < nx; i++) {
      const double left = i > 0 ? line[i - 1] : west;
      const double right = i < nx - 1 ? line[i + 1] : east;
      const double v = (left + right + north[i] + south[i] + below[(long)j * nx + i] +
                        above[(long)j * nx + i] + line[i] * 2) *
                       0.125;
      to[(long)j * nx + i] = v / (1 + v * v * 1e-3);
    }
  }
}

/// Both sweeps of a zone by the calling team, with a barrier between: they read all planes.
static void sweep_planes(Zone* zone, double west, double east) {
#pragma omp for schedule(static)
  for (int k = 0; k < kPlanes; k++) relax(zone, k, west, east);
#pragma omp for schedule(static)
  for (int k = 0; k < kPlanes; k++) {
    const long plane = (long)zone->nx * zone->ny;
    memcpy(zone->now + k * plane, zone->next + k * plane, (size_t)plane * sizeof(double));
  }
}

/// A zone's step, or its start, by the team that is to take the steps.
typedef void ZoneWork(int z, const double faces[kZones]);

static void start_zone(int z, const double faces[kZones]) {
  (void)faces;
  start_planes(&zones[z], z);
}

static void sweep_zone(int z, const double faces[kZones]) {
  const int row = z / kSide * kSide, column = z % kSide;
  const double west = faces[row + (column + kSide - 1) % kSide];
  const double east = faces[row + (column + 1) % kSide];
  sweep_planes(&zones[z], west, east);
}

static void by_team(ZoneWork* work, int z, const double faces[kZones], int inner) {
  // An orphaned loop inside binds to the innermost team, which is the zone's: a region of one for zones
  // that are done by one thread.
#pragma omp parallel num_threads(inner)
  work(z, faces);
}

static void each_zone(const Shape* shape, ZoneWork* work, const double faces[kZones]) {
#pragma omp parallel num_threads(shape->outer) if (shape -> outer > 1)
  {
    const int me = omp_get_thread_num(), threads = omp_get_num_threads();
    if (shape->told) {
      long load = 0;
      for (int z = me; z < kZones; z += threads) load += points_of(&zones[z]);
      bosk_set_load(load);
    }
    for (int z = me; z < kZones; z += threads) by_team(work, z, faces, shape->inner);
  }
}

static void start(const Shape* shape) {
  double faces[kZones];
  for (int z = 0; z < kZones; z++) faces[z] = zones[z].face = z;
  each_zone(shape, start_zone, faces);
}

static void step(const Shape* shape) {
  double faces[kZones];
  for (int z = 0; z < kZones; z++) faces[z] = zones[z].face;
  each_zone(shape, sweep_zone, faces);
  for (int z = 0; z < kZones; z++) zones[z].face = zones[z].now[points_of(&zones[z]) / 2];
}

static double run(void* context, long count) {
  const double start = now_ns();
  for (long i = 0; i < count; i++) step((const Shape*)context);
  return now_ns() - start;
}

static void count_steps(const Shape* shape, const char* objects) {
  FILE* file = fopen(objects, "a");
  if (file == NULL) bench_fail("zones: BOSK_LAB_OBJECTS names a file that cannot be written");
  for (int z = 0; z < kZones; z++)
    fprintf(file, "%p %zu zone %d\n%p %zu zone %d\n", (void*)zones[z].now, bytes_of(&zones[z]), z,
            (void*)zones[z].next, bytes_of(&zones[z]), z);
  fclose(file);
  start(shape);
  BOSK_LAB_MARK(BOSK_LAB_OBJECTS);
  BOSK_LAB_MARK(BOSK_LAB_BEGIN);
  for (int i = 0; i < 3; i++) step(shape);
  BOSK_LAB_MARK(BOSK_LAB_END);
}

static double checksum(const Shape* shape, int steps) {
  start(shape);
  for (int i = 0; i < steps; i++) step(shape);
  double sum = 0;
  for (int z = 0; z < kZones; z++)
    for (long i = 0; i < points_of(&zones[z]); i++) sum += zones[z].now[i] * (double)(i % 13 + 1);
  return sum;
}

int main(int argc, char** argv) {
  if (argc < 2) bench_fail("usage: zones CASE NUMBERS…");
  const char* what = argv[1];
  Shape shape = {1, 1, 0};
  if (strcmp(what, "outer") == 0) {
    shape.outer = bench_int(argc, argv, 2);
  } else if (strcmp(what, "inner") == 0) {
    shape.inner = bench_int(argc, argv, 2);
  } else if (strcmp(what, "nested") == 0 || strcmp(what, "told") == 0) {
    shape.outer = bench_int(argc, argv, 2);
    shape.inner = bench_int(argc, argv, 3);
    shape.told = strcmp(what, "told") == 0;
  } else if (strcmp(what, "sequential") != 0) {
    bench_fail("zones: unknown case");
  }
  omp_set_dynamic(0);
  omp_set_max_active_levels(4);
  make_zones();
  const char* counted = getenv("BOSK_LAB_OBJECTS");
  if (counted != NULL) {
    count_steps(&shape, counted);
    return 0;
  }
  const Shape sequential = {1, 1, 0};
  const double wanted = checksum(&sequential, 5);
  forget_zones();
  if (checksum(&shape, 5) != wanted) bench_fail("zones: not the sequential run's numbers");
  bench_print(what, bench_measure(run, &shape) / 1e6, "ms");
  return 0;
}
