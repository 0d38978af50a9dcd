// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a program may not do with locks must not harm others: destroying a held lock, unsetting one that is
// free or somebody else's. The lock itself is as good as new after the next init.
#include "check.h"

#include <omp.h>

enum { kThreads = 4, kRounds = 200 };

/// Both kinds exclude, and the nestable one nests.
static void works(omp_lock_t* lock, omp_nest_lock_t* nest) {
  long sum = 0, nested = 0;
#pragma omp parallel num_threads(kThreads) shared(sum, nested)
  for (int i = 0; i < kRounds; ++i) {
    omp_set_lock(lock);
    sum++;
    omp_unset_lock(lock);
    omp_set_nest_lock(nest);
    CHECK(omp_test_nest_lock(nest) == 2, "the depth is wrong");
    nested++;
    omp_unset_nest_lock(nest);
    omp_unset_nest_lock(nest);
  }
  CHECK(sum == kThreads * kRounds && nested == sum, "%ld and %ld", sum, nested);
}

int main(void) {
  struct {
    long before;
    omp_lock_t lock;
    int between;
    omp_nest_lock_t nest;
    long after;
  } at = {.before = 11, .between = 22, .after = 33};
  omp_set_dynamic(0);
  for (int misuse = 0; misuse < 6; ++misuse) {
    omp_init_lock(&at.lock);
    omp_init_nest_lock(&at.nest);
    switch (misuse) {
      case 0:  // destroyed while held
        omp_set_lock(&at.lock);
        omp_set_nest_lock(&at.nest);
        omp_destroy_lock(&at.lock);
        omp_destroy_nest_lock(&at.nest);
        break;
      case 1:  // unset while free, more than once
        for (int i = 0; i < 3; ++i) {
          omp_unset_lock(&at.lock);
          omp_unset_nest_lock(&at.nest);
        }
        works(&at.lock, &at.nest);
        break;
      case 2:  // unset by another thread
#pragma omp parallel num_threads(2)
      {
        if (omp_get_thread_num() == 0) {
          omp_set_lock(&at.lock);
          omp_set_nest_lock(&at.nest);
        }
#pragma omp barrier
        if (omp_get_thread_num() == 1) {
          omp_unset_lock(&at.lock);
          omp_unset_nest_lock(&at.nest);
        }
      }
        works(&at.lock, &at.nest);
        break;
      case 3:  // set by a task that ends, unset by its parent
#pragma omp parallel num_threads(2)
#pragma omp single
      {
#pragma omp task
        omp_set_nest_lock(&at.nest);
#pragma omp taskwait
        omp_unset_nest_lock(&at.nest);
      }
        works(&at.lock, &at.nest);
        break;
      case 4:  // used after its end
        omp_destroy_lock(&at.lock);
        omp_destroy_nest_lock(&at.nest);
        works(&at.lock, &at.nest);
        break;
      default:  // one unset too many
        omp_set_nest_lock(&at.nest);
        omp_unset_nest_lock(&at.nest);
        omp_unset_nest_lock(&at.nest);
        works(&at.lock, &at.nest);
    }
    omp_init_lock(&at.lock);
    omp_init_nest_lock(&at.nest);
    works(&at.lock, &at.nest);
    omp_destroy_lock(&at.lock);
    omp_destroy_nest_lock(&at.nest);
    CHECK(at.before == 11 && at.between == 22 && at.after == 33, "a neighbour was overwritten");
  }
  return passed();
}
