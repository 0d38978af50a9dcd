// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bandwidth of vectors too long for caches, by flat teams (STREAM), by a team for each node (Nested-STREAM), and with the
// teams' data exchanged halfway (Twisted-STREAM): Broquedis 2009, sections 4.2 to 4.4. What is done about data that have
// become remote is done here, by system calls, so that every variant of figures 2 and 3 can be had under any runtime.
//
//   stream KERNEL THREADS                  copy, scale, add or triad: MB/s, the best pass and the worst
//   stream nested KERNEL TEAMS THREADS     each team on vectors of its own, which its members touched first
//   stream twisted all VARIANT PASSES TEAMS THREADS    phase 2: all three vectors of a team are another team's
//        VARIANT: nothing, memory (all of them come), threads (they go where the data are)
//   stream twisted two VARIANT PASSES TEAMS THREADS    one of the two that are read is its own still
//        VARIANT: nothing, both, read, written (those come), mixed (threads go, their own vector comes along)
//        ms of phase 2, moving included
//
// STREAM_KIB: length of all teams' parts of one vector together, default 64 MiB. Every element is checked.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <omp.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

enum { kVectors = 3, kMostTeams = 64, kLeastPasses = 5, kMostPasses = 1000, kPage = 4096 };
static const double kFactor = 3;

typedef enum { kCopy, kScale, kAdd, kTriad } Kernel;
static const char* const kKernels[] = {"copy", "scale", "add", "triad"};
static const int kTouched[] = {2, 2, 3, 3};  // vectors that a kernel goes over

typedef struct {
  double* vector[kVectors];  // two are read, the last is written
} Set;

static Set sets[kMostTeams];
static long length;  // of a team's part of a vector

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
  // Small pages: they are what moves.
  madvise(made, (size_t)length * sizeof(double), MADV_NOHUGEPAGE);
  return made;
}

/// The caller's part of a vector, in whole pages.
static void my_part(long* begin, long* end) {
  const long pages = length * (long)sizeof(double) / kPage;
  const long each = kPage / (long)sizeof(double);
  const int me = omp_get_thread_num(), team = omp_get_num_threads();
  *begin = pages * me / team * each;
  *end = pages * (me + 1) / team * each;
}

static void touch_first(int set) {
  long begin, end;
  my_part(&begin, &end);
  for (int v = 0; v < kVectors; v++)
    for (long i = begin; i < end; i++) sets[set].vector[v][i] = value_of(set, v);
}

/// One pass of the caller over its part; `own` has the first vector that is read, `other` the rest.
static void pass(Kernel kernel, int own, int other) {
  long begin, end;
  my_part(&begin, &end);
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

// --- one team, or one for each node ----------------------------------------------------------------

static void each_team(int teams, int threads, void (*work)(int team, const void* data),
                      const void* data) {
  if (teams == 1) {
#pragma omp parallel num_threads(threads)
    work(0, data);
    return;
  }
#pragma omp parallel num_threads(teams)
  {
    const int team = omp_get_thread_num();
#pragma omp parallel num_threads(threads)
    work(team, data);
  }
}

static void touch_team(int team, const void* data) {
  (void)data;
  touch_first(team);
}
static void pass_team(int team, const void* data) { pass(*(const Kernel*)data, team, team); }

static void make_sets(int teams, int threads) {
  const char* text = getenv("STREAM_KIB");
  const long kib = text != NULL && atol(text) > 0 ? atol(text) : 64L << 10;
  if (teams > kMostTeams) bench_fail("stream: at most 64 teams");
  length = kib * 1024 / teams / kPage * (kPage / (long)sizeof(double));
  if (length < threads * (kPage / (long)sizeof(double)))
    bench_fail("stream: STREAM_KIB leaves a member less than a page");
  for (int team = 0; team < teams; team++)
    for (int v = 0; v < kVectors; v++) sets[team].vector[v] = map_vector();
  each_team(teams, threads, touch_team, NULL);
}

static void run_stream(Kernel kernel, int teams, int threads) {
  make_sets(teams, threads);
  const double bytes = (double)length * teams * kTouched[kernel] * sizeof(double);
  const double start = now_ns();
  double best = 0, worst = 0;
  for (int i = 0; i < kMostPasses && (i <= kLeastPasses || now_ns() - start < bench_budget_ns());
       i++) {
    const double began = now_ns();
    each_team(teams, threads, pass_team, &kernel);
    const double rate = bytes / (now_ns() - began) * 1e3;
    if (i == 0) continue;  // threads start
    if (best == 0 || rate > best) best = rate;
    if (worst == 0 || rate < worst) worst = rate;
  }
  for (int team = 0; team < teams; team++) check(kernel, team, team);
  bench_print("best", best, "MB/s");
  bench_print("worst", worst, "MB/s");
}

// --- two phases ------------------------------------------------------------------------------------

typedef struct {
  int teams, passes;
  int own_stays;        // "two": the first vector is the team's own
  int comes[kVectors];  // these come to the threads
  int threads_go;       // to where the last vector is
} Twist;

/// The node of a page; -1: the kernel does not say.
static int node_of(const void* address) {
  void* page = (void*)((uintptr_t)address & ~(uintptr_t)(kPage - 1));
  int status = -1;
  if (syscall(SYS_move_pages, 0, 1UL, &page, NULL, &status, 0) != 0) return -1;
  return status;
}

/// The calling thread goes to the CPUs of a node, as far as it may run there.
static void go_to_node(int node, const cpu_set_t* allowed) {
  char path[80], text[1000];
  snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
  FILE* file = fopen(path, "r");
  if (file == NULL) return;
  const char* at = fgets(text, sizeof text, file);
  fclose(file);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  while (at != NULL && *at >= '0' && *at <= '9') {
    char* next;
    const long first = strtol(at, &next, 10);
    const long last = *next == '-' ? strtol(next + 1, &next, 10) : first;
    for (long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
      if (CPU_ISSET((int)cpu, allowed)) CPU_SET((int)cpu, &cpus);
    at = *next == ',' ? next + 1 : NULL;
  }
  if (CPU_COUNT(&cpus) != 0) sched_setaffinity(0, sizeof cpus, &cpus);
}

/// The caller's part of a vector comes to the node that the caller is on: every member moves its own.
static void bring(double* vector) {
  long begin, end;
  my_part(&begin, &end);
  unsigned cpu, node;
  if (syscall(SYS_getcpu, &cpu, &node, NULL) != 0) return;
  const long pages = (end - begin) * (long)sizeof(double) / kPage;
  if (pages <= 0) return;
  void** address = malloc((size_t)pages * sizeof *address);
  int* nodes = malloc((size_t)pages * sizeof *nodes);
  int* status = malloc((size_t)pages * sizeof *status);
  if (address == NULL || nodes == NULL || status == NULL) bench_fail("stream: out of memory");
  for (long i = 0; i < pages; i++) {
    address[i] = (char*)(vector + begin) + i * kPage;
    nodes[i] = (int)node;
  }
  syscall(SYS_move_pages, 0, (unsigned long)pages, address, nodes, status, 2 /* MPOL_MF_MOVE */);
  free(address);
  free(nodes);
  free(status);
}

static void second_phase(int team, const void* data) {
  const Twist* twist = data;
  const int other = (team + 1) % twist->teams;
  const int own = twist->own_stays ? team : other;
  cpu_set_t before;
  const int bound = twist->threads_go && sched_getaffinity(0, sizeof before, &before) == 0;
  if (bound) go_to_node(node_of(sets[other].vector[2]), &before);
  for (int v = 0; v < kVectors; v++)
    if (twist->comes[v]) bring(sets[v == 0 ? own : other].vector[v]);
  for (int i = 0; i < twist->passes; i++) {
    pass(kTriad, own, other);
#pragma omp barrier
  }
  if (bound) sched_setaffinity(0, sizeof before, &before);
}

static void choose(Twist* twist, const char* data, const char* variant) {
  twist->own_stays = strcmp(data, "two") == 0;
  if (!twist->own_stays && strcmp(data, "all") != 0) bench_fail("stream: twisted all or two");
  static const struct {
    const char* name;
    int two, comes[kVectors], threads_go;
  } kVariants[] = {
      {"nothing", 0, {0, 0, 0}, 0}, {"memory", 0, {1, 1, 1}, 0}, {"threads", 0, {0, 0, 0}, 1},
      {"nothing", 1, {0, 0, 0}, 0}, {"both", 1, {0, 1, 1}, 0},   {"read", 1, {0, 1, 0}, 0},
      {"written", 1, {0, 0, 1}, 0}, {"mixed", 1, {1, 0, 0}, 1},
  };
  for (size_t i = 0; i < sizeof kVariants / sizeof *kVariants; i++) {
    if (kVariants[i].two != twist->own_stays || strcmp(kVariants[i].name, variant) != 0) continue;
    memcpy(twist->comes, kVariants[i].comes, sizeof twist->comes);
    twist->threads_go = kVariants[i].threads_go;
    return;
  }
  bench_fail("stream: no such variant");
}

static void run_twisted(int argc, char** argv) {
  if (argc < 7) bench_fail("usage: stream twisted all|two VARIANT PASSES TEAMS THREADS");
  Twist twist = {.passes = bench_int(argc, argv, 4), .teams = bench_int(argc, argv, 5)};
  const int threads = bench_int(argc, argv, 6);
  choose(&twist, argv[2], argv[3]);
  make_sets(twist.teams, threads);
  const Kernel kernel = kTriad;
  for (int i = 0; i < 3; i++) each_team(twist.teams, threads, pass_team, &kernel);
  for (int team = 0; team < twist.teams; team++) check(kTriad, team, team);
  const double start = now_ns();
  each_team(twist.teams, threads, second_phase, &twist);
  const double took = now_ns() - start;
  for (int team = 0; team < twist.teams; team++) {
    const int other = (team + 1) % twist.teams;
    check(kTriad, twist.own_stays ? team : other, other);
  }
  bench_print("twisted", took / 1e6, "ms");
}

int main(int argc, char** argv) {
  if (argc < 3) bench_fail("usage: stream KERNEL THREADS | nested … | twisted …");
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  if (strcmp(argv[1], "twisted") == 0) {
    run_twisted(argc, argv);
    return 0;
  }
  const int nested = strcmp(argv[1], "nested") == 0;
  for (int k = kCopy; k <= kTriad; k++) {
    if (strcmp(argv[nested ? 2 : 1], kKernels[k]) != 0) continue;
    run_stream((Kernel)k, nested ? bench_int(argc, argv, 3) : 1,
               bench_int(argc, argv, nested ? 4 : 2));
    return 0;
  }
  bench_fail("stream: unknown kernel");
}
