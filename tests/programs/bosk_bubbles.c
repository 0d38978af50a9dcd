// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bubbles of bosk.h on real workers. The argument says what.
#include "bosk_check.h"

#include <stdint.h>

static int count;
static void* add_one(void* argument) {
  __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
  return argument;
}
static int counted(void) { return __atomic_load_n(&count, __ATOMIC_ACQUIRE); }

static bosk_thread_attr_t attributes(bosk_bubble_t bubble) {
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.bubble = bubble;
  attr.detached = 1;
  return attr;
}

// A tree of bubbles, filled before it is woken: nothing runs before, everything after.
static void fill(bosk_bubble_t bubble, int depth, bosk_bubble_t* all, int* made) {
  const bosk_thread_attr_t attr = attributes(bubble);
  for (int i = 0; i < 5; ++i) OK(bosk_thread_create(NULL, &attr, add_one, NULL));
  if (depth == 0) return;
  for (int i = 0; i < 3; ++i) {
    bosk_bubble_t inner;
    OK(bosk_bubble_create(&inner));
    all[(*made)++] = inner;
    // Some are filled before they are inserted, some after.
    if (i == 1) OK(bosk_bubble_insert_bubble(bubble, inner));
    fill(inner, depth - 1, all, made);
    if (i != 1) OK(bosk_bubble_insert_bubble(bubble, inner));
  }
}
static void tree(void) {
  for (int round = 1; round <= 20; ++round) {
    bosk_bubble_t all[64];
    int made = 1;
    OK(bosk_bubble_create(&all[0]));
    fill(all[0], 3, all, &made);
    const int before = (round - 1) * 5 * 40;
    CHECK(counted() == before, "%d threads ran before their bubble was woken", counted() - before);
    OK(bosk_bubble_wake(all[0], NULL));
    OK(bosk_bubble_join(all[0]));
    CHECK(counted() == before + 5 * 40, "%d of 200 threads ran", counted() - before);
    for (int i = made; i-- > 0;) OK(bosk_bubble_destroy(all[i]));
    for (int i = 0; i < made; ++i) FAILS(bosk_bubble_destroy(all[i]), BOSK_ESTALE);
  }
}

// Threads come into a bubble that has burst, and from threads of the bubble itself.
static bosk_bubble_t the_bubble;
static void* divide(void* argument) {
  const intptr_t depth = (intptr_t)argument;
  add_one(NULL);
  if (depth == 0) return NULL;
  const bosk_thread_attr_t attr = attributes(the_bubble);
  for (int i = 0; i < 2; ++i) OK(bosk_thread_create(NULL, &attr, divide, (void*)(depth - 1)));
  return NULL;
}
static void grows(void) {
  OK(bosk_bubble_create(&the_bubble));
  OK(bosk_bubble_wake(the_bubble, NULL));
  OK(bosk_bubble_join(the_bubble));  // empty
  const bosk_thread_attr_t attr = attributes(the_bubble);
  for (int round = 1; round <= 10; ++round) {
    OK(bosk_thread_create(NULL, &attr, divide, (void*)8));
    OK(bosk_bubble_join(the_bubble));
    CHECK(counted() == round * 511, "%d threads ran", counted());
  }
  OK(bosk_bubble_destroy(the_bubble));
}

// Asleep threads are inserted, removed, moved; what was removed does not run before it is woken.
static void moves(void) {
  bosk_bubble_t one;
  bosk_bubble_t other;
  OK(bosk_bubble_create(&one));
  OK(bosk_bubble_create(&other));
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.asleep = 1;
  bosk_thread_t thread[3];
  for (int i = 0; i < 3; ++i) OK(bosk_thread_create(&thread[i], &attr, add_one, NULL));
  for (int i = 0; i < 3; ++i) OK(bosk_bubble_insert_thread(one, thread[i]));
  FAILS(bosk_bubble_insert_thread(other, thread[0]), BOSK_ESTATE);
  FAILS(bosk_bubble_destroy(one), BOSK_EBUSY);
  OK(bosk_bubble_remove_thread(thread[0]));
  FAILS(bosk_bubble_remove_thread(thread[0]), BOSK_ESTATE);
  OK(bosk_bubble_move_thread(other, thread[1]));
  bosk_bubble_t in;
  OK(bosk_thread_get_bubble(thread[0], &in));
  CHECK(in == NULL, "removed, and in a bubble");
  OK(bosk_thread_get_bubble(thread[1], &in));
  CHECK(in == other, "moved elsewhere");
  OK(bosk_bubble_wake(one, NULL));
  OK(bosk_bubble_join(one));
  CHECK(counted() == 1, "%d threads ran", counted());
  OK(bosk_bubble_wake(other, "machine"));
  OK(bosk_bubble_join(other));
  CHECK(counted() == 2, "%d threads ran", counted());
  OK(bosk_thread_wake(thread[0]));
  for (int i = 0; i < 3; ++i) OK(bosk_thread_join(thread[i], NULL));
  CHECK(counted() == 3, "%d threads ran", counted());
  OK(bosk_bubble_destroy(one));
  OK(bosk_bubble_destroy(other));
}

// A bubble within a bubble that is woken already: it goes at once. One that is taken out does not.
static void nests(void) {
  bosk_bubble_t outer;
  bosk_bubble_t inner;
  OK(bosk_bubble_create(&outer));
  OK(bosk_bubble_create(&inner));
  FAILS(bosk_bubble_insert_bubble(outer, outer), BOSK_ELOOP);
  const bosk_thread_attr_t attr = attributes(inner);
  OK(bosk_thread_create(NULL, &attr, add_one, NULL));
  OK(bosk_bubble_insert_bubble(outer, inner));
  FAILS(bosk_bubble_insert_bubble(inner, outer), BOSK_ELOOP);
  FAILS(bosk_bubble_insert_bubble(outer, inner), BOSK_ESTATE);
  FAILS(bosk_bubble_wake(inner, NULL), BOSK_ESTATE);
  OK(bosk_bubble_remove_bubble(inner));
  FAILS(bosk_bubble_remove_bubble(inner), BOSK_ESTATE);
  OK(bosk_bubble_wake(outer, NULL));
  FAILS(bosk_bubble_wake(outer, NULL), BOSK_ESTATE);
  OK(bosk_bubble_join(outer));
  CHECK(counted() == 0, "a thread of a bubble that was taken out ran");
  OK(bosk_bubble_insert_bubble(outer, inner));
  bosk_bubble_t around;
  OK(bosk_bubble_get_bubble(inner, &around));
  CHECK(around == outer, "in another bubble");
  OK(bosk_bubble_join(outer));
  CHECK(counted() == 1, "%d threads ran", counted());
  OK(bosk_bubble_destroy(inner));
  OK(bosk_bubble_destroy(outer));
}

// A running thread goes into a bubble, from one to another, and out.
static void* wander(void* argument) {
  bosk_bubble_t* bubble = argument;
  const bosk_thread_t me = bosk_thread_self();
  bosk_bubble_t in;
  for (int i = 0; i < 50; ++i) {
    OK(bosk_bubble_insert_thread(bubble[0], me));
    OK(bosk_thread_yield());
    OK(bosk_bubble_move_thread(bubble[1], me));
    OK(bosk_thread_yield());
    OK(bosk_thread_get_bubble(me, &in));
    CHECK(in == bubble[1], "in another bubble");
    FAILS(bosk_bubble_join(bubble[1]), BOSK_EDEADLK);
    OK(bosk_bubble_remove_thread(me));
    OK(bosk_thread_yield());
  }
  return NULL;
}
static void wanderers(void) {
  bosk_bubble_t bubble[2];
  bosk_thread_t thread[8];
  for (int i = 0; i < 2; ++i) {
    OK(bosk_bubble_create(&bubble[i]));
    OK(bosk_bubble_wake(bubble[i], NULL));
  }
  for (int i = 0; i < 8; ++i) OK(bosk_thread_create(&thread[i], NULL, wander, bubble));
  for (int i = 0; i < 8; ++i) OK(bosk_thread_join(thread[i], NULL));
  for (int i = 0; i < 2; ++i) {
    OK(bosk_bubble_join(bubble[i]));
    OK(bosk_bubble_destroy(bubble[i]));
  }
}

// The barrier of a bubble's threads; one ends early and is not waited for.
enum { kInBarrier = 6, kPhases = 200 };
static int phase_of[kInBarrier];
static int serials;
static void* phases(void* argument) {
  const int me = (int)(intptr_t)argument;
  for (int phase = 1; phase <= kPhases; ++phase) {
    __atomic_store_n(&phase_of[me], phase, __ATOMIC_RELEASE);
    int serial = -1;
    OK(bosk_bubble_barrier(the_bubble, &serial));
    __atomic_fetch_add(&serials, serial, __ATOMIC_RELAXED);
    for (int i = 0; i < kInBarrier; ++i)
      CHECK(__atomic_load_n(&phase_of[i], __ATOMIC_ACQUIRE) >= phase, "thread %d was left behind",
            i);
    OK(bosk_bubble_barrier(the_bubble, NULL));
    if (me == 0 && phase == kPhases / 2) {
      __atomic_store_n(&phase_of[me], kPhases, __ATOMIC_RELEASE);
      break;
    }
  }
  return NULL;
}
static void barrier(void) {
  OK(bosk_bubble_create(&the_bubble));
  FAILS(bosk_bubble_barrier(the_bubble, NULL), BOSK_EPERM);
  const bosk_thread_attr_t attr = attributes(the_bubble);
  for (intptr_t i = 0; i < kInBarrier; ++i) OK(bosk_thread_create(NULL, &attr, phases, (void*)i));
  OK(bosk_bubble_wake(the_bubble, NULL));
  OK(bosk_bubble_join(the_bubble));
  CHECK(serials <= kPhases && serials >= kPhases / 2, "%d serial threads in %d barriers", serials,
        kPhases);
  OK(bosk_bubble_destroy(the_bubble));
}

// Gangs that wait for processors are emptied and destroyed: nobody spins, and those that come after them start.
enum { kGang = 4 };
static int spinning, stop;
static void* spin(void* argument) {
  __atomic_fetch_add(&spinning, 1, __ATOMIC_ACQ_REL);
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) add_one(NULL);
  return argument;
}
static bosk_bubble_t gang_of(void* (*function)(void*), bosk_thread_t* thread) {
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  OK(bosk_bubble_create(&attr.bubble));
  OK(bosk_bubble_set_relation(attr.bubble, BOSK_RELATION_GANG));
  for (int i = 0; i < kGang; ++i) OK(bosk_thread_create(&thread[i], &attr, function, NULL));
  return attr.bubble;
}
static void gangs(void) {
  for (int round = 0; round < 30; ++round) {
    bosk_thread_t runs[kGang], waits[kGang], last[kGang];
    spinning = stop = 0;
    const bosk_bubble_t first = gang_of(spin, runs);
    OK(bosk_bubble_set_priority(first, 1));  // or the others would have their slices
    OK(bosk_bubble_wake(first, NULL));
    while (__atomic_load_n(&spinning, __ATOMIC_ACQUIRE) != kGang) OK(bosk_thread_yield());
    // Every processor is the first one's. Found or not, this one cannot run.
    const bosk_bubble_t waiting = gang_of(add_one, waits);
    OK(bosk_bubble_wake(waiting, NULL));
    for (int i = 0; i < round % 7; ++i) OK(bosk_thread_yield());
    FAILS(bosk_bubble_destroy(waiting), BOSK_EBUSY);
    for (int i = 0; i < kGang; ++i) OK(bosk_bubble_remove_thread(waits[i]));
    OK(bosk_bubble_destroy(waiting));
    FAILS(bosk_bubble_destroy(waiting), BOSK_ESTALE);
    const bosk_bubble_t after = gang_of(add_one, last);
    OK(bosk_bubble_wake(after, NULL));
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < kGang; ++i) {
      OK(bosk_thread_wake(waits[i]));
      OK(bosk_thread_join(waits[i], NULL));
      OK(bosk_thread_join(runs[i], NULL));
      OK(bosk_thread_join(last[i], NULL));
    }
    OK(bosk_bubble_destroy(first));
    OK(bosk_bubble_destroy(after));
  }
}

int main(int argc, char** argv) {
  static const struct test kTests[] = {
      {"tree", tree},           {"grows", grows},     {"moves", moves}, {"nests", nests},
      {"wanderers", wanderers}, {"barrier", barrier}, {"gangs", gangs}};
  return RUN_TEST(argc, argv, kTests);
}
