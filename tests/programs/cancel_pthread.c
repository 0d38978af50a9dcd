// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// pthread_cancel of a thread that waits in the runtime: for a lock, or for its own region. Nothing in the
// runtime is a cancellation point, so the wait is carried out, and the request acts at the next point of
// the program's own; its clean-up handlers run, and the others' regions go on.
#include "check.h"

#include <omp.h>
#include <pthread.h>

static omp_lock_t lock;
static int before_wait, after_wait, cleaned, stop;

static int members(int threads) {
  int sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  {
#pragma omp barrier
    sum++;
  }
  return sum;
}

static void note_cleaned(void* unused) {
  (void)unused;
  __atomic_add_fetch(&cleaned, 1, __ATOMIC_ACQ_REL);
}

static void at_the_point(void) {
  __atomic_store_n(&after_wait, 1, __ATOMIC_RELEASE);
  pthread_testcancel();
  fail_at(__LINE__, "the thread went on behind a cancellation point");
}

static void* wait_for_lock(void* unused) {
  pthread_cleanup_push(note_cleaned, unused);
  __atomic_store_n(&before_wait, 1, __ATOMIC_RELEASE);
  omp_set_lock(&lock);
  omp_unset_lock(&lock);
  at_the_point();
  pthread_cleanup_pop(0);
  return unused;
}

static void* wait_for_region(void* threads) {
  pthread_cleanup_push(note_cleaned, threads);
  omp_set_dynamic(0);
#pragma omp parallel num_threads(*(int*)threads)
  {
    // The last member comes late to the barrier; all others, the opener among them, wait there.
    if (omp_get_thread_num() == *(int*)threads - 1) {
      __atomic_store_n(&before_wait, 1, __ATOMIC_RELEASE);
      while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
      }
    }
#pragma omp barrier
  }
  at_the_point();
  pthread_cleanup_pop(0);
  return threads;
}

static void cancel(void* (*function)(void*), int threads, const char* what) {
  __atomic_store_n(&before_wait, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&after_wait, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&stop, 0, __ATOMIC_RELEASE);
  int cleaned_before = cleaned;
  omp_set_lock(&lock);
  pthread_t handle;
  CHECK(pthread_create(&handle, NULL, function, &threads) == 0, "pthread_create failed");
  while (!__atomic_load_n(&before_wait, __ATOMIC_ACQUIRE)) {
  }
  for (int i = 0; i < 20; ++i) CHECK(members(3) == 3, "a smaller team");
  CHECK(pthread_cancel(handle) == 0, "pthread_cancel failed");
  for (int i = 0; i < 20; ++i) CHECK(members(3) == 3, "a smaller team");
  CHECK(!__atomic_load_n(&after_wait, __ATOMIC_ACQUIRE) && cleaned == cleaned_before,
        "%s: the wait did not last", what);
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  omp_unset_lock(&lock);
  void* result = NULL;
  CHECK(pthread_join(handle, &result) == 0, "pthread_join failed");
  CHECK(result == PTHREAD_CANCELED, "%s: the thread was not cancelled", what);
  CHECK(after_wait && cleaned == cleaned_before + 1, "%s: %d clean-up handlers ran", what,
        cleaned - cleaned_before);
  CHECK(members(4) == 4, "a smaller team afterwards");
}

int main(void) {
  omp_set_dynamic(0);
  omp_init_lock(&lock);
  for (int round = 0; round < 10; ++round) {
    cancel(wait_for_lock, 1, "lock");
    cancel(wait_for_region, 2, "region of 2");
    cancel(wait_for_region, 8, "region of 8");
  }
  return passed();
}
