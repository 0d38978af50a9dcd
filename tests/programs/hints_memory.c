// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk_attach and friends from programs. `any` asks for nothing but that the program computes the same, and passes on
// every libgomp; `books` wants a machine of one node, where what is attached lies there; `fork` reads the books in a
// child; `handler` brings handlers of its own.
#include "check.h"

#include <omp.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "bosk/hints.h"

enum { kMembers = 6, kRounds = 200, kEach = 1000 };

static double rows[kMembers][kEach];

/// What a program may do with memory, sensible or not.
static void any(void) {
  bosk_attach(BOSK_ME, rows, sizeof rows, BOSK_READS, 0);  // outside of regions
  double sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (round % 7 == 0)
      bosk_attach(round % 10, rows[round % kMembers], sizeof rows[0], BOSK_READS, 3);
    if (round % 50 == 0) bosk_next_touch(BOSK_NEXT_TEAM);
#pragma omp parallel num_threads(kMembers) reduction(+ : sum)
    {
      double* mine = rows[omp_get_thread_num()];
      bosk_attach(BOSK_ME, mine, sizeof rows[0], BOSK_READS_AND_WRITES, 10);
#pragma omp parallel num_threads(2) reduction(+ : sum)
      {
        bosk_attach(BOSK_MY_TEAM, mine, sizeof rows[0], BOSK_WRITES, 0);
        if (omp_get_thread_num() == round % omp_get_num_threads()) {
          for (int i = 0; i < kEach; ++i) mine[i] = round + i;
          for (int i = 0; i < kEach; ++i) sum += mine[i];
        }
#pragma omp task
        bosk_detach(BOSK_MY_TEAM, mine);
      }
      if (round % 3 == 0) bosk_next_touch(BOSK_ME);
      if (round % 4 == 0) bosk_redecide(BOSK_WHEN_ALL);
      if (round % 6 == 0) bosk_redecide(BOSK_AT_ONCE);
      if (round % 5 == 0) bosk_detach_all(BOSK_ME);
    }
  }
  double expected = 0;
  for (int round = 0; round < kRounds; ++round)
    for (int i = 0; i < kEach; ++i) expected += kMembers * (double)(round + i);
  CHECK(sum == expected, "%f, not %f", sum, expected);
}

static uint64_t footprint(int who) {
  uint64_t bytes[2] = {7, 7};
  const int nodes = bosk_footprint(who, bytes, 2);
  CHECK(nodes == 1 && bytes[1] == 0, "%d nodes, %lu bytes on the second", nodes,
        (unsigned long)bytes[1]);
  return bytes[0];
}

static void books(void) {
  CHECK(bosk_attach(2, rows[2], sizeof rows[2], BOSK_READS, 5) == 0, "for member 2");
  CHECK(bosk_attach(BOSK_NEXT_TEAM, rows[0], sizeof rows[0], BOSK_WRITES, 0) == 0, "for the team");
  for (int round = 0; round < 3; ++round) {
#pragma omp parallel num_threads(kMembers)
    {
      const int me = omp_get_thread_num();
      const uint64_t before = round > 0 || me == 2 ? sizeof rows[0] : 0;
      CHECK(footprint(BOSK_ME) == before, "member %d has %lu", me,
            (unsigned long)footprint(BOSK_ME));
      CHECK(footprint(BOSK_MY_TEAM) == sizeof rows[0], "the team");
      CHECK(bosk_attach(BOSK_ME, rows[me], sizeof rows[me], BOSK_READS, 0) == 0, "member %d", me);
      CHECK(footprint(BOSK_ME) == sizeof rows[0], "member %d afterwards", me);
    }
  }
  CHECK(footprint(4) == sizeof rows[0] && footprint(kMembers) == 0, "from outside");
  CHECK(bosk_detach_all(4) == 0 && footprint(4) == 0, "detached");
}

static void errors(void) {
  CHECK(bosk_attach(BOSK_ME, rows, sizeof rows, BOSK_READS, 0) == BOSK_ESTATE, "outside");
  CHECK(bosk_attach(BOSK_MY_TEAM, rows, sizeof rows, BOSK_READS, 0) == BOSK_ESTATE, "outside");
  CHECK(bosk_next_touch(BOSK_ME) == BOSK_ESTATE, "outside");
  CHECK(bosk_attach(-4, rows, sizeof rows, BOSK_READS, 0) == BOSK_EINVAL, "nobody");
  CHECK(bosk_attach(4096, rows, sizeof rows, BOSK_READS, 0) == BOSK_EINVAL, "member 4096");
  CHECK(bosk_attach(0, NULL, 8, BOSK_READS, 0) == BOSK_EINVAL, "null");
  CHECK(bosk_attach(0, rows, 0, BOSK_READS, 0) == BOSK_EINVAL, "no bytes");
  CHECK(bosk_attach(0, rows, 8, 0, 0) == BOSK_EINVAL, "no use");
  CHECK(bosk_attach(0, rows, 8, 259, 0) == BOSK_EINVAL, "use 259");
  CHECK(footprint(0) == 0, "something is attached");
  // Not before: the books themselves would take the place of it.
  char* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(page, 4096);
  CHECK(bosk_attach(0, page, 4096, BOSK_READS, 0) == BOSK_EUNMAPPED, "not mapped");
  CHECK(bosk_footprint(0, NULL, 1) == BOSK_EINVAL, "null");
  CHECK(footprint(0) == 0, "something was attached");
  CHECK(bosk_attach(0, rows[0], sizeof rows[0], BOSK_READS, 0) == 0, "a row");
  CHECK(bosk_attach(1, rows, sizeof rows, BOSK_READS, 0) == BOSK_EOVERLAP, "all rows");
  CHECK(bosk_detach(1, rows[0]) == BOSK_ENOENT, "not member 1's");
  CHECK(bosk_detach(0, rows[1]) == BOSK_ENOAREA, "no area");
  CHECK(footprint(0) == sizeof rows[0] && footprint(1) == 0, "something changed");
  CHECK(bosk_next_touch(1) == 0, "nothing to mark");
  CHECK(bosk_redecide(BOSK_WHEN_ALL) == BOSK_ESTATE, "decided outside");
#pragma omp parallel num_threads(kMembers)
  {
    CHECK(bosk_redecide(2) == BOSK_EINVAL, "decided at time 2");
    CHECK(bosk_redecide(-1) == BOSK_EINVAL, "decided at time -1");
    // On one node there is nothing to decide.
    CHECK(bosk_redecide(BOSK_AT_ONCE) == 0 && bosk_redecide(BOSK_WHEN_ALL) == 0, "decided");
  }
}

static void forks(void) {
#pragma omp parallel num_threads(kMembers)
  bosk_attach(BOSK_ME, rows[omp_get_thread_num()], sizeof rows[0], BOSK_READS, 0);
  const pid_t child = fork();
  if (child == 0) {
    arm_watchdog(60);
    for (int round = 0; round < 3; ++round) {
#pragma omp parallel num_threads(kMembers)
      {
        CHECK(footprint(BOSK_ME) == sizeof rows[0], "in the child");
        bosk_detach(BOSK_ME, rows[omp_get_thread_num()]);
        bosk_attach(BOSK_ME, rows[omp_get_thread_num()], sizeof rows[0], BOSK_WRITES, 0);
      }
    }
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "status %d", status);
  CHECK(footprint(1) == sizeof rows[0], "in the parent");
}

static volatile sig_atomic_t faults;
static void on_fault(int number) {
  ++faults;
  signal(number, SIG_DFL);
}

/// A handler that calls nobody else, installed over bosk's while there are marks.
static void handler(void) {
  const int attached = bosk_attach(BOSK_NEXT_TEAM, rows, sizeof rows, BOSK_READS, 0);
  CHECK(attached == 0, "bosk_attach: %d", attached);
  for (int round = 0; round < 20; ++round) {
    const int marked = bosk_next_touch(BOSK_NEXT_TEAM);
    CHECK(marked == 1, "bosk_next_touch: %d", marked);
    struct sigaction action = {.sa_handler = on_fault};
    CHECK(sigaction(SIGBUS, &action, NULL) == 0, "SIGBUS");
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0, "SIGSEGV");
#pragma omp parallel num_threads(kMembers)
    for (int i = 0; i < kEach; ++i) rows[omp_get_thread_num()][i] += 1;
    CHECK(faults == 0, "%d touches went to the program's handler", (int)faults);
    for (int row = 0; row < kMembers; ++row)
      for (int i = 0; i < kEach; ++i)
        CHECK(rows[row][i] == round + 1, "row %d is %g after %d rounds", row, rows[row][i],
              round + 1);
  }
}

/// Members pass parts on: each lets go of its own while the next attaches it.
static void pass_on(int members) {
  enum { kTurns = 300 };
  const size_t bytes = 3000 * sizeof(double);
  double* parts = calloc(members, bytes);
  memset(parts, 0, members * bytes);  // pages that nobody has touched lie nowhere
  int refused = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma omp parallel num_threads(members) reduction(+ : refused)
    {
      const int part = (omp_get_thread_num() + turn) % members;
      double* mine = parts + part * (bytes / sizeof(double));
      refused += bosk_detach_all(BOSK_ME) != BOSK_OK;
      refused += bosk_attach(BOSK_ME, mine, bytes, BOSK_READS_AND_WRITES, 0) != BOSK_OK;
      uint64_t has = 0;
      refused += bosk_footprint(BOSK_ME, &has, 1) != 1 || has != bytes;
      mine[0] += part;
    }
  }
  CHECK(refused == 0, "%d calls refused, or forgotten", refused);
  for (int part = 0; part < members; ++part)
    CHECK(parts[part * (bytes / sizeof(double))] == (double)part * kTurns, "part %d", part);
  for (int part = 0; part < members; ++part) CHECK(bosk_detach_all(part) == BOSK_OK, "%d", part);
  free(parts);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  omp_set_max_active_levels(2);
  if (strcmp(what, "any") == 0) any();
  if (strcmp(what, "books") == 0) books();
  if (strcmp(what, "errors") == 0) errors();
  if (strcmp(what, "pass_on") == 0) pass_on(argc > 2 ? atoi(argv[2]) : 3);
  if (strcmp(what, "fork") == 0) forks();
  if (strcmp(what, "handler") == 0) handler();
  return passed();
}
