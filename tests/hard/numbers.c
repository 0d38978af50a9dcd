// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members that call a library which makes system calls that act on the calling thread.
//   numbers tids | affinity | settings | handlers | calls | forks
#include "numbers.h"

#include "hard.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>

enum { kMost = 256 };

/// Each member has a number of its own, and keeps it, also while others compute and spin.
static void tids(void) {
  static long seen[3][kMost];
  int size = 0;
  for (int region = 0; region < 3; region++) {
#pragma omp parallel
    {
      const int me = omp_get_thread_num();
      if (me == 0) size = omp_get_num_threads();
      const long number = number_of_thread();
      seen[region][me] = number;
      compute(2);
      CHECK(number_of_thread() == number, "member %d was %ld", me, number);
#pragma omp barrier
      CHECK(number_of_thread() == number, "member %d was %ld", me, number);
    }
    for (int i = 0; i < size; i++) {
      CHECK(seen[region][i] == seen[0][i], "member %d", i);
      for (int j = 0; j < i; j++)
        CHECK(seen[region][i] != seen[region][j], "members %d and %d", i, j);
    }
  }
}

/// Who binds itself is bound, and nobody else.
static void affinity(void) {
  int first = 0;
  for (int region = 0; region < 3; region++) {
#pragma omp parallel
    {
      const int me = omp_get_thread_num();
      // One, where OMP_PROC_BIND binds it.
      const int before = cpus_by_number();
      CHECK(before > 0, "member %d has %d CPUs", me, before);
      if (me == 0) first = before;
#pragma omp barrier
      if (me % 2 == 1) {
        CHECK(bind_by_number() == 0, "member %d", me);
        CHECK(cpus_by_number() == 1, "member %d has %d CPUs", me, cpus_by_number());
      }
      compute(1);
#pragma omp barrier
      const int after = cpus_by_number();
      if (me % 2 == 0) CHECK(after == before, "member %d has %d CPUs, not %d", me, after, before);
    }
  }
  CHECK(cpus_by_number() == first, "%d CPUs, not %d", cpus_by_number(), first);
}

/// Names, priorities and stacks for signals: of who has set them, and of nobody else.
static void settings(void) {
  enum { kStack = 16384, kNice = 2 };
  static char stacks[kMost][kStack];
  char first[16] = "", last[16] = "";
  CHECK(name_of_thread(first) == 0, "no name");
  for (int region = 0; region < 3; region++) {
#pragma omp parallel
    {
      const int me = omp_get_thread_num();
      char mine[24] = "", before[16] = "", name[16] = "";
      void* const stack = stacks[me];
      CHECK(name_of_thread(before) == 0, "member %d has no name", me);
      void* const stack_before = signal_stack();
#pragma omp barrier
      if (me % 2 == 1) {
        snprintf(mine, sizeof mine, "member %d", me);
        CHECK(name_thread(mine) == 0, "member %d", me);
        CHECK(set_nice(kNice) == 0, "member %d", me);
        CHECK(set_signal_stack(stack, kStack) == 0, "member %d", me);
      } else {
        snprintf(mine, sizeof mine, "%s", before);
      }
      for (int i = 0; i < 2; i++) {
        compute(1);
#pragma omp barrier
        CHECK(name_of_thread(name) == 0 && strcmp(name, mine) == 0, "member %d is called %s", me,
              name);
        CHECK(nice_of_thread() == (me % 2 == 1 ? kNice : 0), "member %d: nice %d", me,
              nice_of_thread());
        CHECK(signal_stack() == (me % 2 == 1 ? stack : stack_before), "member %d", me);
      }
    }
  }
  CHECK(name_of_thread(last) == 0 && strcmp(first, last) == 0, "the process is called %s", last);
  CHECK(nice_of_thread() == 0, "nice %d", nice_of_thread());
}

static atomic_long handled, broken;

/// On the alternate stack that its kernel thread has, if it has one.
static void on_signal(int signal) {
  (void)signal;
  volatile unsigned char mine[512];
  const unsigned char value = (unsigned char)(omp_get_thread_num() + 1);
  for (size_t i = 0; i < sizeof mine; i++) mine[i] = value;
  char name[16];
  if (name_of_thread(name) != 0) broken++;
  for (size_t i = 0; i < sizeof mine; i++)
    if (mine[i] != value) broken++;
  handled++;
}

/// Handlers on alternate stacks ask for what is the thread's, while others have the same handler run.
static void handlers(void) {
  enum { kStack = 65536, kTimes = 20 };
  static char stacks[kMost][kStack];
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0, "no handler");
  int size = 0;
#pragma omp parallel
  {
    const int me = omp_get_thread_num();
    if (me == 0) size = omp_get_num_threads();
    char name[24];
    snprintf(name, sizeof name, "member %d", me);
    CHECK(set_signal_stack(stacks[me], kStack) == 0 && name_thread(name) == 0, "member %d", me);
#pragma omp barrier
    for (int i = 0; i < kTimes; i++) {
      raise(SIGUSR1);
      if (i % 4 == 0) {
#pragma omp barrier
      }
    }
  }
  CHECK(broken == 0, "%ld handlers were disturbed", (long)broken);
  CHECK(handled == (long)size * kTimes, "%ld handlers ran", (long)handled);
}

/// Arguments, results and errors come through.
static void calls(void) {
  char name[] = "/tmp/bosk-numbers-XXXXXX";
  const int file = mkstemp(name);
  CHECK(file >= 0, "no file");
  unlink(name);
  char page[4096];
  for (int i = 0; i < 3; i++) {
    memset(page, 'a' + i, sizeof page);
    CHECK(write(file, page, sizeof page) == (ssize_t)sizeof page, "no room");
  }
#pragma omp parallel
  for (int i = 0; i < 200; i++) {
    int error = 0;
    CHECK(bad_call(&error) == -1 && error == EBADF, "errno %d", error);
    CHECK(map_by_number(file, 4096L * (i % 3)) == 'a' + i % 3, "page %d", i % 3);
  }
  close(file);
}

static void forks(void) {
#pragma omp parallel
  for (int i = 0; i < 4; i++) {
    const int status = omp_get_thread_num() % 100 + i;
    CHECK(fork_by_number(status) == status, "child %d", status);
    CHECK(vfork_and_call(status) == status, "child %d", status);
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  omp_set_dynamic(0);
  if (is(mode, "tids"))
    tids();
  else if (is(mode, "affinity"))
    affinity();
  else if (is(mode, "settings"))
    settings();
  else if (is(mode, "handlers"))
    handlers();
  else if (is(mode, "calls"))
    calls();
  else if (is(mode, "forks"))
    forks();
  else
    no_such_mode();
  return passed();
}
