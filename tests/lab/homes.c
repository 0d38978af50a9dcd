// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where threads run that nobody has bound, on a machine of several nodes (docs/binding.md):
// homes MODE NODES CPUS-PER-NODE [FIRST-CPU].
//   flat      a team of all CPUs: member i is on CPU FIRST-CPU + i
//   nested    an outer member on each node, and its team around it
//   habit     first teams of all CPUs, then smaller ones: these are spread over the nodes after a while
//   stranger  somebody computes on a member's CPU and may go nowhere else: the member goes, and comes back
//             when the stranger has ended
// The kernel may move an unbound thread at any time. So shares are asked for, and mode `nowhere` checks that the
// first of them is small where nobody sees to it.
#include "numa.h"

#include <omp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { kMostCpus = 256, kLeastSamples = 40, kMostTries = 20 };

static unsigned nodes;
static unsigned cpus_per_node;
static unsigned first_cpu;
static unsigned cpus;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static unsigned my_cpu(void) {
  unsigned cpu;
  unsigned node;
  where_am_i(&cpu, &node);
  return cpu;
}

static unsigned my_node(void) {
  unsigned cpu;
  unsigned node;
  where_am_i(&cpu, &node);
  return node;
}

static volatile unsigned long sink;

/// Enough that a region is no matter of one time slice of the emulator's.
static void work(void) {
  for (int i = 0; i < 20000; ++i) sink += (unsigned long)i;
}

static long seen;
static long right;

static void count(int is_right) {
  __atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&right, is_right != 0, __ATOMIC_RELAXED);
}

static double share(const char* what) {
  const double percent = 100.0 * (double)right / (double)seen;
  printf("%s: %.1f %% of %ld\n", what, percent, seen);
  seen = right = 0;
  return percent;
}

static double flat(double seconds) {
  const double end = now() + seconds;
  while (now() < end || seen < kLeastSamples * (long)cpus) {
#pragma omp parallel num_threads(cpus)
    {
      work();
      count(my_cpu() == first_cpu + (unsigned)omp_get_thread_num());
    }
  }
  return share("members on the CPU of their number");
}

/// Of the inner members' samples, those on the node where they should be.
static double nested(double seconds) {
  const double end = now() + seconds;
  while (now() < end || seen < kLeastSamples * (long)cpus) {
#pragma omp parallel num_threads(nodes)
    {
      const unsigned home = first_cpu / cpus_per_node + (unsigned)omp_get_thread_num();
#pragma omp parallel num_threads(cpus_per_node)
      {
        work();
        count(my_node() == home);
      }
    }
  }
  return share("inner members on the node of their outer member's number");
}

static double spread_out(double seconds) {
  const double end = now() + seconds;
  while (now() < end) {
#pragma omp parallel num_threads(nodes)
    {
      work();
      count(my_node() == first_cpu / cpus_per_node + (unsigned)omp_get_thread_num());
    }
  }
  return share("members of small teams each on a node of its own");
}

static pid_t start_stranger(unsigned cpu) {
  const pid_t pid = fork();
  CHECK(pid >= 0, "fork: %s", strerror(errno));
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(cpu, &mask);
  if (sched_setaffinity(0, sizeof mask, &mask) != 0) _exit(1);
  for (;;) ++sink;
}

/// One CPU in four stays free. Returns the share of samples in which member `who` is on `cpu`.
static double beside(unsigned who, unsigned cpu, double seconds, const char* what) {
  const double end = now() + seconds;
  while (now() < end || seen < kLeastSamples) {
#pragma omp parallel num_threads(cpus - cpus / 4)
    {
      work();
      if ((unsigned)omp_get_thread_num() == who) count(my_cpu() == cpu);
    }
  }
  return share(what);
}

static void stranger(void) {
  const unsigned team = cpus - cpus / 4;
  const unsigned who = team / 2;
  const unsigned cpu = first_cpu + who * cpus / team;
  CHECK(beside(who, cpu, 2, "before: a member on its CPU") >= 80, "it is not on its CPU");
  const pid_t pid = start_stranger(cpu);
  beside(who, cpu, 2, "while a stranger comes");
  const double beside_it = beside(who, cpu, 3, "with the stranger there");
  CHECK(beside_it <= 25, "the member stays beside the stranger for %.1f %% of the time", beside_it);
  kill(pid, SIGKILL);
  CHECK(waitpid(pid, NULL, 0) == pid, "the stranger was gone before");
  // Its patience has grown to some seconds at most.
  double back = 0;
  for (int i = 0; i < kMostTries && back < 80; ++i) back = beside(who, cpu, 1, "after it has gone");
  CHECK(back >= 80, "the member does not come back: %.1f %%", back);
}

int main(int argc, char** argv) {
  CHECK(argc == 4 || argc == 5, "usage: homes MODE NODES CPUS-PER-NODE [FIRST-CPU]");
  nodes = (unsigned)atoi(argv[2]);
  cpus_per_node = (unsigned)atoi(argv[3]);
  first_cpu = argc == 5 ? (unsigned)atoi(argv[4]) : 0;
  cpus = nodes * cpus_per_node;
  CHECK(cpus >= 2 && cpus <= kMostCpus, "no such machine");
  setvbuf(stdout, NULL, _IOLBF, 0);  // what was found before a check fails
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  const char* mode = argv[1];
  double found = 100;
  if (!strcmp(mode, "flat")) {
    // A worker that found its PU taken, as an emulated one may be, has patience before it goes home.
    found = 0;
    for (int i = 0; i < kMostTries && found < 85; ++i) found = flat(3);
    CHECK(found >= 85, "only %.1f %% are where they should be", found);
  } else if (!strcmp(mode, "nested")) {
    found = 0;
    for (int i = 0; i < kMostTries && found < 85; ++i) found = nested(3);
    CHECK(found >= 85, "only %.1f %% are where they should be", found);
  } else if (!strcmp(mode, "habit")) {
    flat(1);
    // Seats change when the habit has been seen for a while; and a worker that found its PU taken, as an
    // emulated one may be, has patience before it goes home.
    found = 0;
    for (int i = 0; i < kMostTries && found < 85; ++i) found = spread_out(1);
    CHECK(found >= 85, "only %.1f %% are where they should be", found);
    // And back.
    found = 0;
    for (int i = 0; i < kMostTries && found < 85; ++i) found = flat(1);
    CHECK(found >= 85, "only %.1f %% are where they should be", found);
  } else if (!strcmp(mode, "nowhere")) {
    found = flat(2);
    CHECK(found < 60, "%.1f %% are in order though nobody sees to it", found);
  } else if (!strcmp(mode, "stranger")) {
    stranger();
  } else {
    CHECK(0, "no mode %s", mode);
  }
  return passed();
}
