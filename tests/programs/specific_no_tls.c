// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accumulators kept with pthread_getspecific in a program that has no TLS segment: every member of every
// team is a thread of its own, so it must not find the accumulator of another.
#include "check.h"

#include <link.h>
#include <omp.h>
#include <pthread.h>

enum { kMax = 128 };

typedef struct {
  int owner;
  long sum;
} Accumulator;

/// The first object that dl_iterate_phdr names is the program itself.
static int look_for_tls(struct dl_phdr_info* info, size_t size, void* found) {
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_TLS) *(int*)found = 1;
  return 1;
}

/// The member's accumulator: made when its thread has none yet.
__attribute__((noinline)) static Accumulator* mine(pthread_key_t key, Accumulator* storage,
                                                   int* used, int owner) {
  Accumulator* accumulator = pthread_getspecific(key);
  if (!accumulator) {
    int slot = __atomic_fetch_add(used, 1, __ATOMIC_ACQ_REL);
    CHECK(slot < kMax, "too many accumulators");
    accumulator = &storage[slot];
    accumulator->owner = owner;
    accumulator->sum = 0;
    CHECK(pthread_setspecific(key, accumulator) == 0, "pthread_setspecific failed");
  }
  return accumulator;
}

static void check_team(Accumulator* storage, int used, int members, int adds) {
  int seen[kMax] = {0};
  CHECK(used == members, "%d accumulators for %d members", used, members);
  for (int i = 0; i < used; ++i) {
    int owner = storage[i].owner;
    CHECK(owner >= 0 && owner < members && !seen[owner], "accumulator %d belongs to %d", i, owner);
    seen[owner] = 1;
    long expected = 0;
    for (int a = 0; a < adds; ++a) expected += owner * 1000L + a;
    CHECK(storage[i].sum == expected, "member %d summed %ld, expected %ld", owner, storage[i].sum,
          expected);
  }
}

/// A fresh key for each team: no thread has a value yet, whatever it did before.
static void flat(int members, int adds) {
  pthread_key_t key;
  CHECK(pthread_key_create(&key, NULL) == 0, "pthread_key_create failed");
  Accumulator storage[kMax];
  int used = 0;
#pragma omp parallel num_threads(members) shared(storage, used, key)
  {
    int me = omp_get_thread_num();
    for (int a = 0; a < adds; ++a) {
      Accumulator* accumulator = mine(key, storage, &used, me);
      CHECK(accumulator->owner == me, "member %d has the accumulator of %d", me,
            accumulator->owner);
      accumulator->sum += me * 1000L + a;
    }
  }
  check_team(storage, used, members, adds);
  pthread_key_delete(key);
}

static void nested(int outer, int inner, int adds) {
#pragma omp parallel num_threads(outer)
  flat(inner, adds);
}

int main(void) {
  int has_tls = 0;
  dl_iterate_phdr(look_for_tls, &has_tls);
  CHECK(!has_tls, "the program has a TLS segment: the test would prove nothing");
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  for (int round = 0; round < 60; ++round) {
    flat(2, 5);
    flat(8, 5);
    nested(2, 8, 3);
    nested(8, 4, 3);
    nested(1, 64, 3);
    nested(4, 32, 1);
  }
  return passed();
}
