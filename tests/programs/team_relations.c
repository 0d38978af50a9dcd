// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Relations of OpenMP teams: team_relations WHAT OUTER INNER.
//   compute: gangs that compute; of the moments at which one has members that run while another one has some that wait, in most all of
//     its members run
//   barriers: members that meet, make tasks, reduce
//   flags: members that poll for each other
//   across: a member of each gang polls for one of the gang before, so that a gang that waited for ever would hang
//   locks: all gangs share a lock, which is held for longer than a turn
//   levels: gangs in gangs; OUTER threads of INNER of INNER
//   unequal: members that end early, and gangs of other sizes each time
//   said: what bosk_set_relation() and bosk_running() answer
// "env" behind: BOSK_RELATION or BOSK_POLICY says that they are gangs, not the program.
#include "check.h"

#include <bosk/bosk.h>
#include <bosk/hints.h>
#include <omp.h>
#include <stdint.h>

enum { kMostTeams = 16, kMostMembers = 64 };

static int outer, inner, says;

static void set_gang(void) {
  if (!says) return;
  CHECK(bosk_set_relation(BOSK_NEXT_TEAM, BOSK_TEAM_GANG) == 0, "not set");
}

static void compute(long rounds) {
  for (volatile long i = 0; i < rounds; ++i) {
  }
}

// ---- compute

enum { kOutside, kInside, kDone };
static struct {
  _Alignas(64) int state;
} members[kMostTeams][kMostMembers];
static long samples, whole;

static int count_inside(int team) {
  int inside = 0;
  for (int i = 0; i < inner; ++i)
    inside += __atomic_load_n(&members[team][i].state, __ATOMIC_RELAXED) == kInside;
  return inside;
}

static void look(int team) {
  // Some of it have ended, or have not begun.
  if (count_inside(team) != inner) return;
  int waits = 0;
  for (int other = 0; other < outer; ++other)
    waits |= other != team && count_inside(other) == inner;
  if (!waits) return;
  __atomic_fetch_add(&samples, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&whole, bosk_running() == inner, __ATOMIC_RELAXED);
}

static void gangs_that_compute(int team) {
  set_gang();
#pragma omp parallel num_threads(inner)
  {
    const int me = omp_get_thread_num();
    __atomic_store_n(&members[team][me].state, kInside, __ATOMIC_RELAXED);
    for (int piece = 0; piece < 6000; ++piece) {
      compute(20000);
      look(team);
    }
    __atomic_store_n(&members[team][me].state, kDone, __ATOMIC_RELAXED);
  }
}

// ---- barriers

static void gangs_that_meet(int team) {
  static long sums[kMostTeams];
  for (int region = 0; region < 20; ++region) {
    set_gang();
    long sum = 0;
#pragma omp parallel num_threads(inner) reduction(+ : sum)
    {
      for (int i = 0; i < 50; ++i) {
        sum += 1;
#pragma omp barrier
#pragma omp single
        {
#pragma omp taskloop grainsize(1)
          for (int task = 0; task < 4; ++task) {
#pragma omp atomic
            ++sums[team];
          }
        }
      }
    }
    CHECK(sum == 50L * inner, "sum %ld", sum);
  }
  CHECK(sums[team] == 20L * 50 * 4, "tasks: %ld", sums[team]);
}

// ---- flags

static void gangs_that_poll(int team) {
  static int turn[kMostTeams];
  set_gang();
#pragma omp parallel num_threads(inner)
  {
    const int me = omp_get_thread_num();
    for (int round = 0; round < 200; ++round) {
      while (__atomic_load_n(&turn[team], __ATOMIC_ACQUIRE) != round * inner + me) {
      }
      compute(500);
      __atomic_store_n(&turn[team], round * inner + me + 1, __ATOMIC_RELEASE);
    }
  }
  CHECK(turn[team] == 200 * inner, "%d", turn[team]);
}

// ---- across

static void gangs_that_await_each_other(int team) {
  static int reached[kMostTeams];
  set_gang();
#pragma omp parallel num_threads(inner)
  for (int round = 1; round <= 5; ++round) {
    if (omp_get_thread_num() == inner - 1) {
      __atomic_store_n(&reached[team], round, __ATOMIC_RELEASE);
      while (__atomic_load_n(&reached[(team + 1) % outer], __ATOMIC_ACQUIRE) < round) {
      }
    }
#pragma omp barrier
  }
}

// ---- locks

static void gangs_that_share_a_lock(int team) {
  static long count;
  (void)team;
  set_gang();
#pragma omp parallel num_threads(inner)
  for (int round = 0; round < 3; ++round) {
#pragma omp critical
    {
      const long before = count;
      compute(3000000);
      count = before + 1;
    }
  }
#pragma omp critical
  CHECK(count >= 3L * inner, "%ld", count);
}

// ---- levels

static void gangs_in_gangs(int team) {
  static long sums[kMostTeams];
  for (int region = 0; region < 10; ++region) {
    set_gang();
#pragma omp parallel num_threads(inner)
    for (int again = 0; again < 3; ++again) {
      set_gang();
#pragma omp parallel num_threads(inner)
      {
        compute(20000);
#pragma omp barrier
#pragma omp atomic
        ++sums[team];
      }
    }
  }
  CHECK(sums[team] == 30L * inner * inner, "%ld", sums[team]);
}

// ---- unequal

static void gangs_that_change(int team) {
  long sum = 0;
  long expected = 0;
  for (int region = 0; region < 100; ++region) {
    const int size = 1 + (region + team) % (inner + 1);
    expected += size;
    if (says)
      CHECK(
          bosk_set_relation(BOSK_NEXT_TEAM, region % 3 == 0 ? BOSK_TEAM_NONE : BOSK_TEAM_GANG) == 0,
          "not set");
#pragma omp parallel num_threads(size) reduction(+ : sum)
    {
      sum += 1;
      compute(2000L * omp_get_thread_num() * (region % 7));
    }
  }
  CHECK(sum == expected, "%ld of %ld", sum, expected);
}

// ---- said

static void check_answers(void) {
  CHECK(BOSK_TEAM_GANG == (int)BOSK_RELATION_GANG &&
            BOSK_TEAM_DATA_SHARING == (int)BOSK_RELATION_DATA_SHARING &&
            BOSK_TEAM_COLLECTIVE == (int)BOSK_RELATION_COLLECTIVE &&
            BOSK_TEAM_SMT == (int)BOSK_RELATION_SMT_SYMBIOSIS &&
            BOSK_TEAM_MEMORY_BESIDE_COMPUTE == (int)BOSK_RELATION_MEMORY_BESIDE_COMPUTE,
        "other numbers");
  CHECK(bosk_running() == 1, "%d run outside", bosk_running());
  CHECK(bosk_set_relation(BOSK_MY_TEAM, BOSK_TEAM_GANG) == BOSK_ESTATE, "outside of regions");
  CHECK(bosk_set_relation(BOSK_ME, BOSK_TEAM_GANG) == BOSK_EINVAL, "of a member");
  CHECK(bosk_set_relation(3, BOSK_TEAM_GANG) == BOSK_EINVAL, "of a member to come");
  CHECK(bosk_set_relation(BOSK_NEXT_TEAM, 7) == BOSK_EINVAL, "no such relation");
  CHECK(bosk_set_relation(BOSK_NEXT_TEAM, -1) == BOSK_EINVAL, "no such relation");
  CHECK(bosk_set_relation(BOSK_NEXT_TEAM, BOSK_RELATION_SEQUENCE) == BOSK_ENOTSUP, "a sequence");
  for (int relation = BOSK_TEAM_NONE; relation <= BOSK_TEAM_MEMORY_BESIDE_COMPUTE; ++relation) {
    if (relation == (int)BOSK_RELATION_SEQUENCE) continue;
    long sum = 0;
#pragma omp parallel num_threads(outer) reduction(+ : sum)
    {
      CHECK(bosk_set_relation(BOSK_NEXT_TEAM, relation) == 0, "relation %d", relation);
      for (int region = 0; region < 5; ++region) {
#pragma omp parallel num_threads(inner) reduction(+ : sum)
        {
          CHECK(bosk_set_relation(BOSK_MY_TEAM, relation) == 0, "relation %d", relation);
          const int running = bosk_running();
          CHECK(running >= 1 && running <= inner, "%d of %d run", running, inner);
          sum += 1;
        }
      }
    }
    CHECK(sum == 5L * outer * inner, "relation %d: %ld", relation, sum);
  }
}

int main(int argc, char** argv) {
  CHECK(argc >= 4, "usage: team_relations WHAT OUTER INNER [env]");
  arm_watchdog(60);
  outer = atoi(argv[2]);
  inner = atoi(argv[3]);
  says = argc == 4;
  CHECK(outer >= 1 && outer <= kMostTeams && inner >= 1 && inner <= kMostMembers, "too many");
  static const struct {
    const char* name;
    void (*run)(int team);
  } kinds[] = {{"compute", gangs_that_compute},    {"barriers", gangs_that_meet},
               {"flags", gangs_that_poll},         {"across", gangs_that_await_each_other},
               {"locks", gangs_that_share_a_lock}, {"levels", gangs_in_gangs},
               {"unequal", gangs_that_change}};
  omp_set_max_active_levels(4);
  if (strcmp(argv[1], "said") == 0) check_answers();
  const int computes = strcmp(argv[1], "compute") == 0;
  // A stranger who has a CPU when gangs take turns parts one: it has three tries.
  for (int left = computes ? 3 : 1; left > 0; --left) {
    memset(members, 0, sizeof members);
    samples = whole = 0;
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
      if (strcmp(argv[1], kinds[i].name) != 0) continue;
#pragma omp parallel num_threads(outer)
      kinds[i].run(omp_get_thread_num());
    }
    if (!computes) continue;
    CHECK(samples > 0, "no gang ever waited");
    printf("whole: %ld of %ld, %.1f %%\n", whole, samples, 100. * (double)whole / (double)samples);
    if (whole * 10 >= samples * 8) break;
    CHECK(left > 1, "gangs were whole in %ld of %ld moments", whole, samples);
  }
  printf("ok\n");
  return 0;
}
