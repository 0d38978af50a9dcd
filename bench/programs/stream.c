// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bandwidth of vectors too long for caches, by flat teams (STREAM), by a team for each node (Nested-STREAM), and with the
// teams' data exchanged halfway (Twisted-STREAM): Broquedis 2009, sections 4.2 to 4.4. What is done about data that have
// become remote is done here, by system calls, so that every variant of figures 2 and 3 can be had under any runtime.
//
//   stream KERNEL THREADS                  copy, scale, add or triad: MB/s, the best pass and the worst
//   stream nested KERNEL TEAMS THREADS     each team on vectors of its own, which its members touched first
//   stream twisted all VARIANT PASSES TEAMS THREADS [REGIONS]    phase 2: all three vectors of a team are another team's
//        VARIANT: nothing, memory (all of them come), threads (they go where the data are)
//   stream twisted two VARIANT PASSES TEAMS THREADS [REGIONS]    one of the two that are read is its own still
//        VARIANT: nothing, both, read, written (those come), mixed (threads go, their own vector comes along)
//        ms of phase 2, moving included, and what both phases come to in MB/s: "phase-1" (of one region), "phase-2". Two more
//        VARIANTs by bosk's hints (bosk/hints.h), which other runtimes do not know:
//        next-touch (all data of the phase are marked), policy (told who works on what, and no more)
//        REGIONS: how many inner regions share the passes of phase 2 (1); of several, each pass of phase 1 has one too
//
// Where BOSK_LAB_OBJECTS names a file, it gets a line for each vector, and what is counted are the passes (bosk lab
// --locality=objects, docs/locality.md): of two phases the second, or what follows its first STREAM_SETTLES passes.
// STREAM_KIB: length of all teams' parts of one vector together, default 64 MiB. Every element is checked.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <omp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bosk/hints.h>

#include "nodes.h"
#include "stream_sets.h"

enum { kLeastPasses = 5, kMostPasses = 1000 };

static const char* const kKernels[] = {"copy", "scale", "add", "triad"};
static const int kTouched[] = {2, 2, 3, 3};  // vectors that a kernel goes over

static void my_part(long* begin, long* end) {
  part_of(omp_get_thread_num(), omp_get_num_threads(), begin, end);
}
static void pass(Kernel kernel, int own, int other) {
  pass_of(kernel, own, other, omp_get_thread_num(), omp_get_num_threads());
}

// --- one team, or one for each node ----------------------------------------------------------------

typedef void Work(int team, int region, const void* data);

/// Each team opens `regions` regions, one after the other.
static void each_team(int teams, int threads, int regions, Work* work, const void* data) {
  if (teams == 1) {
#pragma omp parallel num_threads(threads)
    work(0, 0, data);
    return;
  }
#pragma omp parallel num_threads(teams)
  {
    const int team = omp_get_thread_num();
    for (int region = 0; region < regions; region++) {
#pragma omp parallel num_threads(threads)
      work(team, region, data);
    }
  }
}

static void touch_team(int team, int region, const void* data) {
  (void)region;
  (void)data;
  touch_first(team, omp_get_thread_num(), omp_get_num_threads());
}
static void pass_team(int team, int region, const void* data) {
  (void)region;
  pass(*(const Kernel*)data, team, team);
}

static void run_stream(Kernel kernel, int teams, int threads) {
  make_sets(teams, threads);
  each_team(teams, threads, 1, touch_team, NULL);
  const double bytes = (double)length * teams * kTouched[kernel] * sizeof(double);
  const double start = now_ns();
  double best = 0, worst = 0;
  BOSK_LAB_MARK(BOSK_LAB_OBJECTS);
  BOSK_LAB_MARK(BOSK_LAB_BEGIN);
  for (int i = 0; i < kMostPasses && (i <= kLeastPasses || now_ns() - start < bench_budget_ns());
       i++) {
    const double began = now_ns();
    each_team(teams, threads, 1, pass_team, &kernel);
    const double rate = bytes / (now_ns() - began) * 1e3;
    if (i == 0) continue;  // threads start
    if (best == 0 || rate > best) best = rate;
    if (worst == 0 || rate < worst) worst = rate;
  }
  BOSK_LAB_MARK(BOSK_LAB_END);
  for (int team = 0; team < teams; team++) check(kernel, team, team);
  bench_print("best", best, "MB/s");
  bench_print("worst", worst, "MB/s");
}

// --- two phases ------------------------------------------------------------------------------------

typedef struct {
  int teams, passes, regions;
  long settles;
  int own_stays;        // "two": the first vector is the team's own
  int comes[kVectors];  // these come to the threads
  int threads_go;       // to where the last vector is
  int told;             // bosk is told who works on what
  int marked;           // and all of it goes to who touches it next
} Twist;

/// The calling kernel thread goes to the CPUs of a node, as far as the process may run there, wherever it was bound. Where
/// several members share one (bosk's nested teams, without BOSK_IDENTITY=kthread), that is not the caller's alone, and
/// stays bound when the caller goes on elsewhere.
static void go_to_node(int node) {
  cpu_set_t cpus;
  cpus_of_node(node, &cpus);
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

static int other_of(const Twist* twist, int team) { return (team + 1) % twist->teams; }
static int own_of(const Twist* twist, int team) {
  return twist->own_stays ? team : other_of(twist, team);
}

static void attach(double* vector, int use, int times) {
  if (bosk_attach(BOSK_ME, vector, (size_t)length * sizeof(double), use, (uint32_t)times) != 0)
    bench_fail("stream: bosk_attach");
}

/// What the calling member's team is about to work on: said in a region of its own, so that who places the next one
/// knows of everybody's.
static void tell_second_phase(int team, const Twist* twist) {
  attach(sets[own_of(twist, team)].vector[0], BOSK_READS, twist->passes);
  attach(sets[other_of(twist, team)].vector[1], BOSK_READS, twist->passes);
  attach(sets[other_of(twist, team)].vector[2], BOSK_WRITES, twist->passes);
  if (twist->marked && bosk_next_touch(BOSK_ME) < 0) bench_fail("stream: bosk_next_touch");
}

static double first_began, first_took;

static void first_phase(int team, int region, const void* data) {
  const Twist* twist = data;
  if (region == 0) touch_first(team, omp_get_thread_num(), omp_get_num_threads());
  if (twist->regions > 1) {
    if (region > 0) pass(kTriad, team, team);
    return;
  }
  // The first team's first member tells for all, who do the same at the same time.
  const int tells = team == 0 && omp_get_thread_num() == 0;
  for (int i = 0; i < kFirstPasses; i++) {
#pragma omp barrier
    if (tells && i == 0) first_began = now_ns();
    pass(kTriad, team, team);
  }
#pragma omp barrier
  if (tells) first_took = now_ns() - first_began;
}

static void second_phase(int team, int region, const void* data) {
  const Twist* twist = data;
  const int other = other_of(twist, team);
  const int own = own_of(twist, team);
  cpu_set_t before;
  const int bound = twist->threads_go && sched_getaffinity(0, sizeof before, &before) == 0;
  if (bound) go_to_node(node_of_page(sets[other].vector[2]));
  for (int v = 0; v < kVectors && region == 0; v++)
    if (twist->comes[v]) bring(sets[v == 0 ? own : other].vector[v]);
  const int end = twist->passes * (region + 1) / twist->regions;
  for (int i = twist->passes * region / twist->regions; i < end; i++) {
    settle(team, omp_get_thread_num(), i, twist->settles);
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
  twist->marked = strcmp(variant, "next-touch") == 0;
  twist->told = twist->marked || strcmp(variant, "policy") == 0;
  if (twist->told && !(bosk_attach)) bench_fail("stream: this libgomp is not bosk");
  if (twist->told) return;
  bench_fail("stream: no such variant");
}

static void run_twisted(int argc, char** argv) {
  if (argc < 7) bench_fail("usage: stream twisted all|two VARIANT PASSES TEAMS THREADS [REGIONS]");
  Twist twist = {.passes = bench_int(argc, argv, 4),
                 .teams = bench_int(argc, argv, 5),
                 .regions = argc > 7 ? bench_int(argc, argv, 7) : 1};
  const int threads = bench_int(argc, argv, 6);
  choose(&twist, argv[2], argv[3]);
  small_pages = !twist.told;
  make_sets(twist.teams, threads);
  each_team(twist.teams, threads, twist.regions > 1 ? 1 + kFirstPasses : 1, first_phase, &twist);
  BOSK_LAB_MARK(BOSK_LAB_OBJECTS);
  twist.settles = passes_to_settle();
  if (twist.settles == 0) BOSK_LAB_MARK(BOSK_LAB_BEGIN);
  const double start = now_ns();
  if (twist.told) {
#pragma omp parallel num_threads(twist.teams)
    tell_second_phase(omp_get_thread_num(), &twist);
  }
  each_team(twist.teams, threads, twist.regions, second_phase, &twist);
  const double took = now_ns() - start;
  BOSK_LAB_MARK(BOSK_LAB_END);
  for (int team = 0; team < twist.teams; team++)
    check(kTriad, own_of(&twist, team), other_of(&twist, team));
  bench_print("twisted", took / 1e6, "ms");
  const double bytes = (double)length * twist.teams * kVectors * sizeof(double);
  if (twist.regions == 1) bench_print("phase-1", bytes * kFirstPasses / first_took * 1e3, "MB/s");
  bench_print("phase-2", bytes * twist.passes / took * 1e3, "MB/s");
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
