// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where bound threads run, by the kernel's word: placement MODE NODES CPUS-PER-NODE, on a machine whose CPUs are
// numbered node by node. Every region is opened many times: a team that is kept must stay where it was.
#include "numa.h"

#include <omp.h>

enum { kRounds = 25, kMostCpus = 256 };

static unsigned nodes;
static unsigned cpus_per_node;

/// The caller runs on `node`, and where OpenMP says that it is: on a CPU of its place.
static unsigned check_place(const char* what, unsigned node) {
  unsigned cpu;
  unsigned found;
  where_am_i(&cpu, &found);
  CHECK(found == node, "%s: on CPU %u of node %u, not on node %u", what, cpu, found, node);
  const int place = omp_get_place_num();
  CHECK(place >= 0, "%s: on no place", what);
  int ids[kMostCpus];
  const int count = omp_get_place_num_procs(place);
  CHECK(count > 0 && count <= kMostCpus, "%s: place %d has %d CPUs", what, place, count);
  omp_get_place_proc_ids(place, ids);
  int inside = 0;
  for (int i = 0; i < count; ++i) inside |= ids[i] == (int)cpu;
  CHECK(inside, "%s: on CPU %u, which is not of its place %d", what, cpu, place);
  return cpu;
}

/// One outer member on each node, its team around it, a member on each CPU.
static void nested(void) {
  for (int round = 0; round < kRounds; ++round) {
    int taken[kMostCpus] = {0};
#pragma omp parallel num_threads(nodes)
    {
      const unsigned node = (unsigned)omp_get_thread_num();
      CHECK(omp_get_num_threads() == (int)nodes, "%d outer members", omp_get_num_threads());
      check_place("outer", node);
#pragma omp parallel num_threads(cpus_per_node)
      {
        CHECK(omp_get_num_threads() == (int)cpus_per_node, "%d inner members",
              omp_get_num_threads());
        const unsigned cpu = check_place("inner", node);
        const unsigned expected = node * cpus_per_node + (unsigned)omp_get_thread_num();
        CHECK(cpu == expected, "round %d: member %d of node %u is on CPU %u, not %u", round,
              omp_get_thread_num(), node, cpu, expected);
#pragma omp atomic
        taken[cpu]++;
#pragma omp barrier
        CHECK(check_place("inner after a barrier", node) == cpu,
              "a barrier moved a member from CPU %u", cpu);
      }
      check_place("outer after its team", node);
    }
    for (unsigned cpu = 0; cpu < nodes * cpus_per_node; ++cpu)
      CHECK(taken[cpu] == 1, "round %d: %d members on CPU %u", round, taken[cpu], cpu);
  }
}

/// Twice as many inner members as CPUs: they share, but no team leaves its node.
static void crowded(void) {
  for (int round = 0; round < kRounds; ++round) {
#pragma omp parallel num_threads(nodes)
    {
      const unsigned node = (unsigned)omp_get_thread_num();
#pragma omp parallel num_threads(2 * cpus_per_node)
      {
        check_place("crowded", node);
#pragma omp barrier
        check_place("crowded after a barrier", node);
      }
    }
  }
}

/// One team over all CPUs in their order.
static void close_team(void) {
  for (int round = 0; round < kRounds; ++round) {
#pragma omp parallel num_threads(nodes* cpus_per_node)
    {
      const unsigned me = (unsigned)omp_get_thread_num();
      const unsigned cpu = check_place("close", me / cpus_per_node);
      CHECK(cpu == me, "member %u is on CPU %u", me, cpu);
    }
  }
}

/// Places that are whole nodes: each gets its share of the members, in order.
static void by_nodes(void) {
  CHECK(omp_get_num_places() == (int)nodes, "%d places for %u nodes", omp_get_num_places(), nodes);
  for (int round = 0; round < kRounds; ++round) {
#pragma omp parallel num_threads(nodes* cpus_per_node)
    check_place("by nodes", (unsigned)omp_get_thread_num() / cpus_per_node);
  }
}

/// Tasks of a bound team run on the CPUs of its members, whoever made them.
static void tasks(void) {
#pragma omp parallel num_threads(nodes)
  {
    const unsigned node = (unsigned)omp_get_thread_num();
#pragma omp parallel num_threads(cpus_per_node)
#pragma omp single
    for (int i = 0; i < 100; ++i) {
#pragma omp task
      check_place("task", node);
    }
  }
}

enum { kTasks = 200 };

/// One member of each node makes tasks. How many of all ran on their creators' nodes.
static int make_tasks(void) {
  int at_home = 0;
  unsigned made = 0;
#pragma omp parallel num_threads(nodes* cpus_per_node)
  {
    unsigned cpu, home;
    where_am_i(&cpu, &home);
    if (omp_get_thread_num() % (int)cpus_per_node == 0) {
      for (int i = 0; i < kTasks; ++i) {
#pragma omp task shared(at_home)
        {
          unsigned here, node;
          for (volatile int work = 0; work < 1000000; ++work) continue;
          where_am_i(&here, &node);
#pragma omp atomic
          at_home += node == home;
        }
      }
#pragma omp atomic
      made++;
    }
    // Before all are there everybody would come to the first who has any.
    for (unsigned seen = 0; seen < nodes;) {
#pragma omp atomic read
      seen = made;
    }
  }
  return at_home;
}

/// Members take tasks of their nodes, and others only when nothing is left there.
static void near_tasks(void) {
  enum { kMeasured = 3 };
  make_tasks();  // the machine is read when stealing has gone on for a while
  make_tasks();
  int at_home = 0;
  for (int round = 0; round < kMeasured; ++round) at_home += make_tasks();
  const int all = kMeasured * (int)nodes * kTasks;
  printf("%d of %d tasks ran on the node of their creator\n", at_home, all);
  CHECK(10 * at_home >= 9 * all, "only %d of %d tasks ran near", at_home, all);
}

int main(int argc, char** argv) {
  CHECK(argc == 4, "usage: placement MODE NODES CPUS-PER-NODE");
  nodes = (unsigned)atoi(argv[2]);
  cpus_per_node = (unsigned)atoi(argv[3]);
  CHECK(nodes > 0 && cpus_per_node > 0 && nodes * cpus_per_node <= kMostCpus, "no such machine");
  omp_set_dynamic(0);
  if (!strcmp(argv[1], "nested"))
    nested();
  else if (!strcmp(argv[1], "crowded"))
    crowded();
  else if (!strcmp(argv[1], "close"))
    close_team();
  else if (!strcmp(argv[1], "nodes"))
    by_nodes();
  else if (!strcmp(argv[1], "tasks"))
    tasks();
  else if (!strcmp(argv[1], "near_tasks"))
    near_tasks();
  else
    CHECK(0, "no mode %s", argv[1]);
  return passed();
}
