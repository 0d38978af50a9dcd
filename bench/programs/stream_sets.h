// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The vectors of STREAM and its kin, a set for each team: where they are told to whoever counts accesses, what a member
// does with its part, and what must have come out.
#ifndef STREAM_SETS_H
#define STREAM_SETS_H
#include <stdint.h>
#include <sys/mman.h>

#include <bosk/markers.h>
#include "bench.h"

enum { kVectors = 3, kMostTeams = 64, kPage = 4096, kFirstPasses = 3 };
static const double kFactor = 3;

typedef enum { kCopy, kScale, kAdd, kTriad } Kernel;
typedef struct {
  double* vector[kVectors];  // two are read, the last is written
} Set;

static Set sets[kMostTeams];
static long length;  // of a team's part of a vector
/// Where nobody splits huge pages that vectors of several teams share: variants that move by system calls, or not at all.
static int small_pages;

/// What a read vector holds: a number of its own for each set.
static double value_of(int set, int vector) { return set * 10 + vector + 1; }

static double result_of(Kernel kernel, double first, double second) {
  switch (kernel) {
    case kCopy:
      return first;
    case kScale:
      return kFactor * first;
    case kAdd:
      return first + second;
    default:
      return first + kFactor * second;
  }
}

static double* map_vector(void) {
  void* made = mmap(NULL, (size_t)length * sizeof(double), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) bench_fail("stream: out of memory");
  if (small_pages) madvise(made, (size_t)length * sizeof(double), MADV_NOHUGEPAGE);
  return made;
}

/// Member `me`'s part of a vector, in whole pages.
static void part_of(int me, int team, long* begin, long* end) {
  const long pages = length * (long)sizeof(double) / kPage;
  const long each = kPage / (long)sizeof(double);
  *begin = pages * me / team * each;
  *end = pages * (me + 1) / team * each;
}

static void touch_first(int set, int me, int team) {
  long begin, end;
  part_of(me, team, &begin, &end);
  for (int v = 0; v < kVectors; v++)
    for (long i = begin; i < end; i++) sets[set].vector[v][i] = value_of(set, v);
}

/// One pass of member `me` over its part; `own` has the first vector that is read, `other` the rest.
static void pass_of(Kernel kernel, int own, int other, int me, int team) {
  long begin, end;
  part_of(me, team, &begin, &end);
  const double* restrict a = sets[own].vector[0];
  const double* restrict b = sets[other].vector[1];
  double* restrict c = sets[other].vector[2];
  switch (kernel) {
    case kCopy:
      for (long i = begin; i < end; i++) c[i] = a[i];
      break;
    case kScale:
      for (long i = begin; i < end; i++) c[i] = kFactor * a[i];
      break;
    case kAdd:
      for (long i = begin; i < end; i++) c[i] = a[i] + b[i];
      break;
    default:
      for (long i = begin; i < end; i++) c[i] = a[i] + kFactor * b[i];
  }
}

static void check(Kernel kernel, int own, int other) {
  const double wanted = result_of(kernel, value_of(own, 0), value_of(other, 1));
  for (long i = 0; i < length; i++) {
    if (sets[other].vector[2][i] != wanted) bench_fail("stream: a wrong element");
    if (sets[own].vector[0][i] != value_of(own, 0)) bench_fail("stream: a vector has changed");
    if (sets[other].vector[1][i] != value_of(other, 1)) bench_fail("stream: a vector has changed");
  }
}

/// A line for each vector where somebody counts accesses.
static void tell_objects(int teams) {
  const char* path = getenv("BOSK_LAB_OBJECTS");
  if (path == NULL) return;
  FILE* file = fopen(path, "a");
  if (file == NULL) bench_fail("stream: BOSK_LAB_OBJECTS names a file that cannot be written");
  for (int team = 0; team < teams; team++)
    for (int v = 0; v < kVectors; v++)
      fprintf(file, "%p %zu set %d vector %d\n", (void*)sets[team].vector[v],
              (size_t)length * sizeof(double), team, v);
  fclose(file);
}

static void make_sets(int teams, int threads) {
  const char* text = getenv("STREAM_KIB");
  const long kib = text != NULL && atol(text) > 0 ? atol(text) : 64L << 10;
  if (teams > kMostTeams) bench_fail("stream: at most 64 teams");
  length = kib * 1024 / teams / kPage * (kPage / (long)sizeof(double));
  if (length < threads * (kPage / (long)sizeof(double)))
    bench_fail("stream: STREAM_KIB leaves a member less than a page");
  for (int team = 0; team < teams; team++)
    for (int v = 0; v < kVectors; v++) sets[team].vector[v] = map_vector();
  tell_objects(teams);
}

/// STREAM_SETTLES: of the second phase, how many passes of the first team's first thread go by before accesses are counted; 0:
/// all are counted, those while things are moving, too.
static long passes_to_settle(void) {
  const char* text = getenv("STREAM_SETTLES");
  return text != NULL && atol(text) > 0 ? atol(text) : 0;
}

/// Before each pass of the second phase; `done`: how many it has done of it.
static void settle(int team, int me, long done, long to_settle) {
  if (team == 0 && me == 0 && done == to_settle && done != 0) BOSK_LAB_MARK(BOSK_LAB_BEGIN);
}

#endif
