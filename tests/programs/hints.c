// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk_set_load from programs: what may be told, and what is seen of it from outside. `any` asks for
// nothing but that the program computes the same, and passes on every libgomp.
#include "check.h"

#include <omp.h>

#include "bosk/hints.h"

#ifdef OWN_STACKS
#include <pthread.h>
/// A program that can ask for a thread's stack gets one for each member.
__attribute__((used)) static int (*const asks_for_stacks)(pthread_t,
                                                          pthread_attr_t*) = pthread_getattr_np;
#endif

enum { kMembers = 6, kRounds = 300 };

/// What a program may do with loads, sensible or not.
static void any(void) {
  bosk_set_load(5);  // outside of regions
  long sum = 0;
  for (int round = 0; round < kRounds; ++round) {
#pragma omp parallel num_threads(kMembers) reduction(+ : sum)
    {
      bosk_set_load((omp_get_thread_num() * 7 + round) % 5 - 1);
#pragma omp parallel num_threads(3) reduction(+ : sum)
      {
        bosk_set_load(omp_get_thread_num() + 1L);
        sum += 1 + omp_get_ancestor_thread_num(1);
#pragma omp barrier
#pragma omp task
        bosk_set_load(3);
      }
    }
  }
  const long expected = 3l * kRounds * (kMembers + kMembers * (kMembers - 1) / 2);
  CHECK(sum == expected, "%ld, not %ld", sum, expected);
}

static void errors(void) {
#pragma omp parallel num_threads(2)
  {
    CHECK(bosk_set_load(-1) == EINVAL, "-1 was taken");
    CHECK(bosk_set_load(4294967295) == EINVAL, "2^32-1 was taken");
    CHECK(bosk_set_load(4294967294) == 0, "2^32-2 was refused");
    CHECK(bosk_set_load(0) == 0, "0 was refused");
  }
#pragma omp parallel num_threads(4097)
  CHECK(bosk_set_load(1) == ENOMEM, "a load of one in 4097 was taken");
}

/// On one worker without ticks members start in the order in which they are claimed.
static void order(void) {
  static const int loads[kMembers] = {1, 3, 9, 3, 7, 9}, expected[kMembers] = {0, 2, 5, 4, 1, 3};
  int started[kMembers], next = 0;
#pragma omp parallel num_threads(kMembers)
  bosk_set_load(loads[omp_get_thread_num()]);
#pragma omp parallel num_threads(kMembers)
  {
    int at;
#pragma omp atomic capture
    at = next++;
    started[at] = omp_get_thread_num();
  }
  for (int i = 0; i < kMembers; ++i)
    CHECK(started[i] == expected[i], "number %d is member %d", i, started[i]);
}

/// BOSK_LOAD has told that member 1 has three quarters of the work; 8 workers.
static void sizes(void) {
  int sizes[2] = {0, 0};
#pragma omp parallel num_threads(2)
  {
    const int me = omp_get_thread_num();
    long members = 0;
#pragma omp parallel reduction(+ : members)
    {
      members += 1;
      if (omp_get_thread_num() == 0) sizes[me] = omp_get_num_threads();
      CHECK(omp_get_team_size(1) == 2 && omp_get_team_size(2) == omp_get_num_threads(),
            "sizes of teams disagree");
    }
    CHECK(members == sizes[me], "%ld members ran of %d", members, sizes[me]);
#pragma omp parallel num_threads(5) reduction(+ : members)
    members += 1;
    CHECK(members == sizes[me] + 5, "a clause was not obeyed");
  }
  CHECK(sizes[0] == 2 && sizes[1] == 6, "%d and %d threads", sizes[0], sizes[1]);
}

int main(int argc, char** argv) {
  omp_set_max_active_levels(3);
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "any") == 0) {
    any();
  } else if (strcmp(what, "errors") == 0) {
    errors();
  } else if (strcmp(what, "order") == 0) {
    order();
  } else if (strcmp(what, "sizes") == 0) {
    sizes();
  } else {
    CHECK(0, "usage: hints any|errors|order|sizes");
  }
  return passed();
}
