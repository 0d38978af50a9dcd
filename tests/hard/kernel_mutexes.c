// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mutexes whose owner the kernel knows by its thread number, contended: priority inheritance, robust, and both with checks.
//   kernel_mutexes inherit|robust|inherit_checks flat|nested [MEMBERS]
#include "hard.h"

#include <pthread.h>

static pthread_mutex_t mutex;
static int inside, total;

static void member(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    int error = pthread_mutex_lock(&mutex);
    CHECK(error == 0, "pthread_mutex_lock: %d", error);
    const int before = __atomic_fetch_add(&inside, 1, __ATOMIC_ACQ_REL);
    CHECK(before == 0, "%d others hold the mutex", before);
    ++total;
    // Now and then for longer than a time slice.
    compute(i % 4 == 0 ? 12 : .1);
    __atomic_sub_fetch(&inside, 1, __ATOMIC_ACQ_REL);
    error = pthread_mutex_unlock(&mutex);
    CHECK(error == 0, "pthread_mutex_unlock: %d", error);
    delay_rounds(1000);
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const char* shape = argc > 2 ? argv[2] : "";
  const int members = argc > 3 ? atoi(argv[3]) : omp_get_max_threads();
  const int rounds = members > 16 ? 1 : members > 4 ? 4 : 12;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if (is(mode, "robust"))
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  else if (is(mode, "inherit") || is(mode, "inherit_checks"))
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  else
    no_such_mode();
  if (is(mode, "inherit_checks")) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  CHECK(pthread_mutex_init(&mutex, &attributes) == 0, "pthread_mutex_init");
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  int expected = members * rounds;
  if (is(shape, "flat")) {
#pragma omp parallel num_threads(members)
    member(rounds);
  } else {
    const int inner = members / 2 > 0 ? members / 2 : 1;
    expected = 2 * inner * rounds;
#pragma omp parallel num_threads(2)
    {
#pragma omp parallel num_threads(inner)
      member(rounds);
    }
  }
  CHECK(total == expected, "%d turns, not %d", total, expected);
  return passed();
}
