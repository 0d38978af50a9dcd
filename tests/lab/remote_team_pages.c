// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pages of an OpenMP team that go to other nodes behind bosk's back, inside of one long region: they come back to the members that work
// on them, because somebody has noticed (BOSK_MEMORY_WATCH). remote_team_pages NODES CPUS ROUNDS pages|members|kernel
//   A team of a member for each CPU. The members attach memory that nobody has touched; it is moved to the next node by move_pages(2)
//   in each round. members: instead the members bind themselves to CPUs of the next node, and stay there. kernel: they are
//   put there, and may go anywhere, as the kernel itself may do with those that nobody has bound: it is they that come back.
#include "../programs/check.h"
#include "moved_pages.h"

#include <bosk/error.h>
#include <bosk/hints.h>
#include <omp.h>
#include <string.h>

static int each, rounds, members_move, kernel_moves;
static _Atomic int tid_of[MOST];
static _Atomic int wanted_node[MOST];

/// No call of libc's, which the runtime might see.
static long raw_call(long number, long first, long second, long third) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(first), "S"(second), "d"(third)
                   : "rcx", "r11", "memory");
  return result;
}

static void take_away(int i) {
  cpu_set_t there_now, all;
  const int tid = atomic_load(&tid_of[i]);
  CPU_ZERO(&there_now);
  CPU_SET((atomic_load(&node_of[i]) + 1) % there * each + i % each, &there_now);
  CHECK(raw_call(SYS_sched_getaffinity, tid, sizeof all, (long)&all) > 0, "no CPUs of %d", tid);
  CHECK(raw_call(SYS_sched_setaffinity, tid, sizeof all, (long)&there_now) == 0, "not away");
  CHECK(raw_call(SYS_sched_setaffinity, tid, sizeof all, (long)&all) == 0, "not free");
}

/// What the first member does beside its work, when all have done some. There is nobody else: all CPUs are busy.
static void control(void) {
  static long seen[MOST];
  static int round;
  for (int i = 0; i < threads; ++i)
    if (atomic_load(&turns[i]) <= seen[i]) return;
  for (int i = 0; i < threads; ++i) {
    const int wanted = atomic_load(&wanted_node[i]);
    if (wanted >= 0 && atomic_load(&node_of[i]) != wanted) return;
  }
  for (int i = 0; i < threads; ++i) seen[i] = atomic_load(&turns[i]);
  const int share = local_share();
  if (share < 90) return;
  printf("%d %% local\n", share);
  if (round++ == rounds) {
    atomic_store(&stop, 1);
    return;
  }
  for (int i = 0; i < threads; ++i)
    if (kernel_moves)
      take_away(i);
    else if (members_move)
      atomic_store(&wanted_node[i], (atomic_load(&node_of[i]) + 1) % there);
    else
      move_away(i);
  fflush(stdout);
}

/// CPUs are numbered node by node in the lab.
static void go_where_told(int me) {
  static __thread int bound = -1;
  const int wanted = atomic_load(&wanted_node[me]);
  if (wanted < 0 || wanted == bound) return;
  bound = wanted;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(wanted * each + me % each, &cpus);
  CHECK(sched_setaffinity(0, sizeof cpus, &cpus) == 0, "sched_setaffinity: %s", strerror(errno));
}

static void work(int me) {
  atomic_store(&tid_of[me], (int)raw_call(SYS_gettid, 0, 0, 0));
  while (!atomic_load(&stop)) {
    unsigned cpu, node;
    go_where_told(me);
    where_am_i(&cpu, &node);
    atomic_store(&node_of[me], (int)node);
    for (int i = 0; i < PAGES; ++i) area_of[me][(size_t)i * kPage] += 1;
    atomic_fetch_add(&turns[me], 1);
    if (me == 0) control();
  }
}

int main(int argc, char** argv) {
  CHECK(argc == 5, "nodes, CPUs of each, rounds, who moves");
  there = atoi(argv[1]);
  each = atoi(argv[2]);
  threads = there * each;
  rounds = atoi(argv[3]);
  members_move = strcmp(argv[4], "members") == 0;
  kernel_moves = strcmp(argv[4], "kernel") == 0;
  CHECK(there > 1 && threads <= MOST, "%d threads", threads);
  for (int i = 0; i < threads; ++i) {
    area_of[i] = fresh_small_pages((size_t)PAGES * kPage);
    atomic_store(&wanted_node[i], -1);
  }
#pragma omp parallel num_threads(threads)
  {
    const int me = omp_get_thread_num();
    const int error =
        bosk_attach(BOSK_ME, area_of[me], (size_t)PAGES * kPage, BOSK_READS_AND_WRITES, 100000);
    CHECK(error == 0, "attach: %s", bosk_strerror(error));
    work(me);
    CHECK(bosk_detach(BOSK_ME, area_of[me]) == 0, "detach");
  }
  return passed();
}
