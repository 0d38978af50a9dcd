// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locks that know their owner, held by the opener of a region: its members are not the owner. The locks are initialised
// statically, as std::recursive_mutex is; nothing here asks who a thread is.
//   owners mutex|file|checks|held flat|nested [MEMBERS]
#include "hard.h"

#include <pthread.h>
#include <mutex>

namespace {

int team;
std::recursive_mutex recursive;
pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
pthread_mutex_t plain_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void recursive_mutexes() {
  const std::lock_guard<std::recursive_mutex> outer(recursive);
  pthread_mutex_lock(&plain_recursive);
  int mine = 0, others = 0;
#pragma omp parallel num_threads(team) reduction(+ : mine, others)
  {
    const bool opener = omp_get_thread_num() == 0;
    const bool got = recursive.try_lock();
    if (got) (opener ? mine : others) += 1;
    if (got) recursive.unlock();
    const int error = pthread_mutex_trylock(&plain_recursive);
    CHECK(error == 0 || error == EBUSY, "pthread_mutex_trylock: %d", error);
    if (error == 0) (opener ? mine : others) += 1;
    if (error == 0) pthread_mutex_unlock(&plain_recursive);
  }
  pthread_mutex_unlock(&plain_recursive);
  CHECK(mine == 2, "the opener got %d of its 2 mutexes again", mine);
  CHECK(others == 0, "members got the opener's mutexes %d times", others);
}

void files(FILE* file) {
  flockfile(file);
  int mine = 0, others = 0;
#pragma omp parallel num_threads(team) reduction(+ : mine, others)
  if (ftrylockfile(file) == 0) {
    (omp_get_thread_num() == 0 ? mine : others) += 1;
    funlockfile(file);
  }
  funlockfile(file);
  CHECK(mine == 1, "the opener did not get its file again");
  CHECK(others == 0, "%d members got the opener's file", others);
}

void checks() {
  pthread_mutex_lock(&checked);
  int wrong = 0;
#pragma omp parallel num_threads(team) reduction(+ : wrong)
  if (omp_get_thread_num() != 0) {
    wrong += pthread_mutex_trylock(&checked) != EBUSY;
    wrong += pthread_mutex_unlock(&checked) != EPERM;
  } else {
    wrong += pthread_mutex_lock(&checked) != EDEADLK;
  }
  CHECK(pthread_mutex_unlock(&checked) == 0, "the mutex is no longer the opener's");
  CHECK(wrong == 0, "%d answers of a mutex with checks are wrong", wrong);
}

/// Members hold a recursive mutex twice while they compute for long.
void held() {
  int inside = 0, total = 0;
#pragma omp parallel num_threads(team)
  for (int i = 0; i < 2; ++i) {
    const std::lock_guard<std::recursive_mutex> first(recursive);
    const std::lock_guard<std::recursive_mutex> second(recursive);
    const int before = __atomic_fetch_add(&inside, 1, __ATOMIC_ACQ_REL);
    CHECK(before == 0, "%d others hold the recursive mutex", before);
    ++total;
    compute(12.0 / (team > 8 ? 4 : 1));
    __atomic_sub_fetch(&inside, 1, __ATOMIC_ACQ_REL);
  }
  CHECK(total == 2 * team, "%d turns of %d", total, 2 * team);
}

void test(const char* mode) {
  if (is(mode, "held")) return held();
  for (int i = 0; i < 100; ++i) {
    if (is(mode, "mutex")) recursive_mutexes();
    if (is(mode, "file")) files(stderr);
    if (is(mode, "checks")) checks();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const char* shape = argc > 2 ? argv[2] : "";
  if (!is(mode, "mutex") && !is(mode, "file") && !is(mode, "checks") && !is(mode, "held"))
    no_such_mode();
  team = argc > 3 ? atoi(argv[3]) : omp_get_max_threads();
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  if (is(shape, "nested")) {
    // One of two opens regions, the other has some of its own with a lock in them.
    if (team > 16) team = 16;
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 1) {
      test(mode);
    } else {
#pragma omp parallel num_threads(team)
      compute(10.0 / team);
    }
  } else {
    test(mode);
  }
  return passed();
}
