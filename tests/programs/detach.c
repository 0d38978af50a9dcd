// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Detached tasks: complete when their body has ended and their event is fulfilled, by whomever and whenever.
#include "check.h"

#include <omp.h>
#include <pthread.h>

typedef struct {
  omp_event_handle_t event;
  int* flag;
} Message;

static Message mailbox[256];
static int posted, stop;

/// A pthread that has nothing to do with OpenMP fulfils the events.
static void* fulfiller(void* unused) {
  (void)unused;
  int taken = 0;
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    int there = __atomic_load_n(&posted, __ATOMIC_ACQUIRE);
    if (taken == there) {
      usleep(50);
      continue;
    }
    Message message = mailbox[taken++ % 256];
    __atomic_store_n(message.flag, 1, __ATOMIC_RELEASE);
    omp_fulfill_event(message.event);
  }
  return NULL;
}

static void post(omp_event_handle_t event, int* flag) {
#pragma omp critical(post)
  {
    mailbox[posted % 256] = (Message){event, flag};
    __atomic_store_n(&posted, posted + 1, __ATOMIC_RELEASE);
  }
}

static void by_foreign_thread(int threads) {
#pragma omp parallel num_threads(threads)
#pragma omp single
  {
    for (int i = 0; i < 10; ++i) {
      int flag = 0;
      omp_event_handle_t event;
#pragma omp task detach(event) shared(flag)
      post(event, &flag);
#pragma omp taskwait
      CHECK(__atomic_load_n(&flag, __ATOMIC_ACQUIRE),
            "taskwait came back before the event was fulfilled");
    }
    int flags[20] = {0};
#pragma omp taskgroup
    for (int i = 0; i < 20; ++i) {
      omp_event_handle_t event;
#pragma omp task detach(event) shared(flags) firstprivate(i)
      post(event, &flags[i]);
    }
    for (int i = 0; i < 20; ++i)
      CHECK(__atomic_load_n(&flags[i], __ATOMIC_ACQUIRE), "taskgroup ended before event %d", i);
  }
}

/// The end of a region waits, too.
static void at_region_end(int threads) {
  int at_end[8] = {0};
#pragma omp parallel num_threads(threads) shared(at_end)
#pragma omp single nowait
  for (int i = 0; i < 8; ++i) {
    omp_event_handle_t event;
#pragma omp task detach(event) shared(at_end) firstprivate(i)
    post(event, &at_end[i]);
  }
  for (int i = 0; i < 8; ++i)
    CHECK(__atomic_load_n(&at_end[i], __ATOMIC_ACQUIRE), "the region ended before event %d", i);
}

static void by_other_tasks(int threads) {
#pragma omp parallel num_threads(threads)
#pragma omp single
  for (int i = 0; i < 30; ++i) {
    omp_event_handle_t event;
    int order = 0, dependent = 0;
    __attribute__((unused)) int address = 0;
#pragma omp task detach(event) depend(out : address) shared(order)
    {
#pragma omp atomic
      order++;
    }
    // A successor must wait for the event, not for the body only.
#pragma omp task depend(in : address) shared(order, dependent)
    dependent = order;
#pragma omp task firstprivate(event) shared(order)
    {
#pragma omp atomic
      order++;
      omp_fulfill_event(event);
    }
#pragma omp taskwait
    CHECK(dependent == 2, "the successor of a detached task ran at step %d", dependent);
  }
}

/// Fulfilled before the body ends, in the body itself, and undeferred.
static void early(int threads) {
  int done = 0;
#pragma omp parallel num_threads(threads) shared(done)
#pragma omp single
  for (int i = 0; i < 30; ++i) {
    omp_event_handle_t event;
#pragma omp task detach(event) shared(done)
    {
      omp_fulfill_event(event);
#pragma omp atomic
      done++;
    }
    omp_event_handle_t other;
#pragma omp task detach(other) if (0) shared(done)
    {
#pragma omp atomic
      done++;
      omp_fulfill_event(other);
    }
#pragma omp taskwait
    CHECK(done == 2 * (i + 1), "%d tasks after taskwait %d", done, i);
  }
}

int main(int argc, char** argv) {
  // Stock libgomp 12 misses the event of a foreign thread when the whole team waits at the region's end.
  int at_end = argc > 1 && !strcmp(argv[1], "at-end");
  omp_set_dynamic(0);
  pthread_t handle;
  CHECK(pthread_create(&handle, NULL, fulfiller, NULL) == 0, "pthread_create failed");
  int sizes[] = {1, 2, 8, omp_get_max_threads()};
  for (int round = 0; round < 5; ++round)
    for (int s = 0; s < 4; ++s) {
      by_foreign_thread(sizes[s]);
      if (at_end) at_region_end(sizes[s]);
      by_other_tasks(sizes[s]);
      early(sizes[s]);
    }
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  pthread_join(handle, NULL);
  return passed();
}
