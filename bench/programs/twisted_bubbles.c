// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Twisted-STREAM (Broquedis 2009, section 4.4) with threads and bubbles as the paper has it: a bubble for each team, all of
// them in one, and memory attached to the bubbles. In the first phase each team's lies on a node of its own. When the data change hands they are told so; what is done about
// it is left to the policy (BOSK_POLICY=memory), or forced.
//
//   twisted_bubbles all|two VARIANT PASSES TEAMS THREADS
//        all, two: as in stream.c. VARIANT: nothing (nobody is told), policy (told, and no more), next-touch (marked)
//        ms of phase 2, moving included
//
// STREAM_KIB, STREAM_SETTLES and BOSK_LAB_OBJECTS as in stream.c.
#include <bosk/bosk.h>
#include <bosk/memory.h>
#include <bosk/sync.h>
#include <bosk/topology.h>

#include "stream_sets.h"

enum { kMostThreads = 16 };

typedef struct {
  int team, me;
} Member;

static int teams, threads, passes, own_stays, told, marked;
static bosk_bubble_t all, bubbles[kMostTeams];
static Member members[kMostTeams][kMostThreads];
static bosk_barrier_t everybody;
static double second_began;
static long settles;

static void ok(int error, const char* what) {
  if (error >= 0) return;
  fprintf(stderr, "twisted_bubbles: %s: %s\n", what, bosk_strerror(error));
  exit(1);
}

static int other_of(int team) { return (team + 1) % teams; }
static int own_of(int team) { return own_stays ? team : other_of(team); }

static void attach(int team, double* vector, int use, int times) {
  ok(bosk_mem_attach_bubble(vector, bubbles[team], use, (uint32_t)times), "bosk_mem_attach_bubble");
}
static void attach_all(int team, int own, int other, int times) {
  attach(team, sets[own].vector[0], BOSK_MEM_READS, times);
  attach(team, sets[other].vector[1], BOSK_MEM_READS, times);
  attach(team, sets[other].vector[2], BOSK_MEM_WRITES, times);
}

/// Where the first phase has them: a team's vectors on a node of their own, and the bubble told.
static void place_set(int team, int nodes) {
  for (int me = 0; me < threads; me++) touch_first(team, me, threads);
  for (int v = 0; v < kVectors; v++) {
    double* vector = sets[team].vector[v];
    ok(bosk_mem_register(vector, (size_t)length * sizeof(double)), "bosk_mem_register");
    ok(bosk_mem_migrate(vector, team % nodes, NULL), "bosk_mem_migrate");
  }
  attach_all(team, team, team, kFirstPasses);
}

/// By one thread while the others wait: all teams' memory is another one's from here.
static void tell_second_phase(void) {
  for (int team = 0; team < teams; team++)
    ok(bosk_mem_detach_all_bubble(bubbles[team]), "bosk_mem_detach_all_bubble");
  for (int team = 0; team < teams; team++) {
    attach_all(team, own_of(team), other_of(team), passes);
    if (marked) ok(bosk_mem_next_touch_bubble(bubbles[team], 0), "bosk_mem_next_touch_bubble");
  }
  if (!marked) ok(bosk_mem_redecide(all, BOSK_MEM_AT_ONCE), "bosk_mem_redecide");
}

static void* run(void* argument) {
  const Member* m = argument;
  const bosk_bubble_t mine = bubbles[m->team];
  for (int i = 0; i < kFirstPasses; i++) {
    pass_of(kTriad, m->team, m->team, m->me, threads);
    ok(bosk_bubble_barrier(mine, NULL), "bosk_bubble_barrier");
  }
  if (bosk_barrier_wait(&everybody) == BOSK_BARRIER_SERIAL) {
    BOSK_LAB_MARK(BOSK_LAB_OBJECTS);
    if (settles == 0) BOSK_LAB_MARK(BOSK_LAB_BEGIN);
    second_began = now_ns();
    if (told) tell_second_phase();
  }
  bosk_barrier_wait(&everybody);
  for (int i = 0; i < passes; i++) {
    settle(m->team, m->me, i, settles);
    pass_of(kTriad, own_of(m->team), other_of(m->team), m->me, threads);
    ok(bosk_bubble_barrier(mine, NULL), "bosk_bubble_barrier");
  }
  return NULL;
}

static void make_team(int team) {
  ok(bosk_bubble_create(&bubbles[team]), "bosk_bubble_create");
  ok(bosk_bubble_insert_bubble(all, bubbles[team]), "bosk_bubble_insert_bubble");
  for (int me = 0; me < threads; me++) {
    members[team][me] = (Member){team, me};
    bosk_thread_attr_t attr;
    ok(bosk_thread_attr_init(&attr), "bosk_thread_attr_init");
    attr.bubble = bubbles[team];
    attr.detached = 1;
    ok(bosk_thread_create(NULL, &attr, run, &members[team][me]), "bosk_thread_create");
  }
}

int main(int argc, char** argv) {
  if (argc < 6) bench_fail("usage: twisted_bubbles all|two VARIANT PASSES TEAMS THREADS");
  own_stays = strcmp(argv[1], "two") == 0;
  marked = strcmp(argv[2], "next-touch") == 0;
  told = marked || strcmp(argv[2], "policy") == 0;
  if (!told && strcmp(argv[2], "nothing") != 0) bench_fail("twisted_bubbles: no such variant");
  passes = bench_int(argc, argv, 3);
  teams = bench_int(argc, argv, 4);
  threads = bench_int(argc, argv, 5);
  if (threads > kMostThreads) bench_fail("twisted_bubbles: at most 16 threads a team");
  small_pages = !told;
  make_sets(teams, threads);
  settles = passes_to_settle();
  ok(bosk_barrier_init(&everybody, (uint32_t)(teams * threads)), "bosk_barrier_init");
  ok(bosk_bubble_create(&all), "bosk_bubble_create");
  for (int team = 0; team < teams; team++) make_team(team);
  for (int team = 0; team < teams; team++) place_set(team, bosk_topo_nodes());
  ok(bosk_bubble_wake(all, NULL), "bosk_bubble_wake");
  ok(bosk_bubble_join(all), "bosk_bubble_join");
  const double took = now_ns() - second_began;
  BOSK_LAB_MARK(BOSK_LAB_END);
  for (int team = 0; team < teams; team++) check(kTriad, own_of(team), other_of(team));
  bench_print("twisted", took / 1e6, "ms");
  return 0;
}
