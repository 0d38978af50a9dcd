// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads in closed bubbles that somebody waits for. The argument says what.
#include "bosk_check.h"

#include <stdint.h>

static bosk_thread_attr_t in(bosk_bubble_t bubble) {
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.bubble = bubble;
  return attr;
}

// All that follows happens in a thread, because main runs nothing on its own stack.
static void in_thread(void* (*function)(void*)) {
  bosk_thread_t thread;
  OK(bosk_thread_create(&thread, NULL, function, NULL));
  OK(bosk_thread_join(thread, NULL));
}

// A thread for each call, in nested bubbles: joined in either order, or not at all, or woken by others in between.
typedef struct {
  int number;
  bosk_bubble_t around;
  long result;
} Call;
static void* fib(void* argument) {
  Call* c = argument;
  c->result = c->number;
  if (c->number < 2) return NULL;
  bosk_bubble_t bubble;
  OK(bosk_bubble_create(&bubble));
  const bosk_thread_attr_t attr = in(bubble);
  Call child[2];
  bosk_thread_t thread[2];
  const int late = c->number % 3 == 0;
  for (int i = 0; i < 2; ++i) {
    if (late && i == 1 && c->around != NULL) OK(bosk_bubble_insert_bubble(c->around, bubble));
    child[i] = (Call){c->number - 1 - i, bubble, -1};
    OK(bosk_thread_create(&thread[i], &attr, fib, &child[i]));
  }
  if (c->around == NULL)
    OK(bosk_bubble_wake(bubble, NULL));
  else if (!late)
    OK(bosk_bubble_insert_bubble(c->around, bubble));
  if (c->number % 5 == 0) OK(bosk_thread_yield());
  const int first = c->number % 2;
  if (c->number % 7 == 0) OK(bosk_bubble_join(bubble));
  OK(bosk_thread_join(thread[first], NULL));
  OK(bosk_thread_join(thread[1 - first], NULL));
  bosk_stats_t stats = {.size = sizeof stats};
  OK(bosk_bubble_get_stats(bubble, &stats));
  CHECK(stats.threads == 0, "%u threads in a bubble whose threads have ended", stats.threads);
  OK(bosk_bubble_destroy(bubble));
  FAILS(bosk_bubble_destroy(bubble), BOSK_ESTALE);
  c->result = child[0].result + child[1].result;
  return NULL;
}
static void recursion(void) {
  for (int round = 0; round < 30; ++round) {
    Call call = {12, NULL, 0};
    bosk_thread_t thread;
    OK(bosk_thread_create(&thread, NULL, fib, &call));
    OK(bosk_thread_join(thread, NULL));
    CHECK(call.result == 144, "fib(12) is %ld", call.result);
  }
}

// A bubble that nobody has woken lends nothing, nor one inside of it.
static int may_run;
static bosk_bubble_t sleeper;
static void* look(void* argument) {
  CHECK(__atomic_load_n(&may_run, __ATOMIC_ACQUIRE) == 1,
        "a thread ran before its bubble was woken");
  return argument;
}
static void* waker(void* argument) {
  for (int i = 0; i < 50; ++i) OK(bosk_thread_yield());
  __atomic_store_n(&may_run, 1, __ATOMIC_RELEASE);
  OK(bosk_bubble_wake(sleeper, NULL));
  return argument;
}
static void* joins_what_sleeps(void* nested) {
  for (int round = 0; round < 50; ++round) {
    may_run = 0;
    OK(bosk_bubble_create(&sleeper));
    bosk_bubble_t inner = sleeper;
    if (nested != NULL) {
      OK(bosk_bubble_create(&inner));
      OK(bosk_bubble_insert_bubble(sleeper, inner));
    }
    bosk_thread_attr_t attr = in(inner);
    bosk_thread_t thread;
    OK(bosk_thread_create(&thread, &attr, look, NULL));
    attr = in(NULL);
    bosk_thread_t other;
    OK(bosk_thread_create(&other, &attr, waker, NULL));
    OK(bosk_thread_join(thread, NULL));
    OK(bosk_thread_join(other, NULL));
    if (inner != sleeper) OK(bosk_bubble_destroy(inner));
    OK(bosk_bubble_destroy(sleeper));
  }
  return NULL;
}
/// The joiner is lent itself.
static void* in_bubbles(void* argument) {
  for (intptr_t nested = 0; nested < 2; ++nested) {
    bosk_bubble_t bubble;
    OK(bosk_bubble_create(&bubble));
    const bosk_thread_attr_t attr = in(bubble);
    bosk_thread_t thread;
    OK(bosk_thread_create(&thread, &attr, joins_what_sleeps, (void*)nested));
    OK(bosk_bubble_wake(bubble, NULL));
    OK(bosk_thread_join(thread, NULL));
    OK(bosk_bubble_destroy(bubble));
  }
  return argument;
}
static void asleep(void) { in_thread(in_bubbles); }

// On one worker: what is more urgent comes first, and what a bubble stands for is kept.
static int order[8];
static int entries;
static void* note(void* argument) {
  order[entries++] = (int)(intptr_t)argument;
  return NULL;
}
static void check_order(int first, int second) {
  CHECK(entries == 2 && order[0] == first && order[1] == second, "%d of 2 ran, %d before %d",
        entries, order[0], order[1]);
  entries = 0;
}
static void* two(bosk_bubble_t bubble, const bosk_thread_attr_t* other, int joined_first) {
  const bosk_thread_attr_t attr = in(bubble);
  bosk_thread_t thread[2];
  OK(bosk_thread_create(&thread[0], &attr, note, (void*)0));
  OK(bosk_thread_create(&thread[1], other != NULL ? other : &attr, note, (void*)1));
  OK(bosk_bubble_wake(bubble, NULL));
  OK(bosk_thread_join(thread[joined_first], NULL));
  OK(bosk_thread_join(thread[1 - joined_first], NULL));
  return NULL;
}
static void* compares(void* argument) {
  bosk_bubble_t bubble;
  OK(bosk_bubble_create(&bubble));
  bosk_thread_attr_t other = in(NULL);
  two(bubble, &other, 0);
  check_order(0, 1);  // who is waited for comes first
  OK(bosk_bubble_destroy(bubble));
  OK(bosk_bubble_create(&bubble));
  other.priority = 1;
  two(bubble, &other, 0);
  check_order(1, 0);  // but for what is more urgent
  OK(bosk_bubble_destroy(bubble));
  OK(bosk_bubble_create(&bubble));
  two(bubble, NULL, 1);
  check_order(1, 0);
  OK(bosk_bubble_destroy(bubble));
  // From here on bubbles have wishes.
  OK(bosk_bubble_create(&bubble));
  OK(bosk_bubble_set_priority(bubble, -1));
  other.priority = 0;
  two(bubble, &other, 0);
  check_order(1, 0);
  OK(bosk_bubble_destroy(bubble));
  OK(bosk_bubble_create(&bubble));
  OK(bosk_bubble_set_relation(bubble, BOSK_RELATION_SEQUENCE));
  two(bubble, NULL, 1);
  check_order(0, 1);
  OK(bosk_bubble_destroy(bubble));
  return argument;
}
static void urgency(void) { in_thread(compares); }

int main(int argc, char** argv) {
  const struct test tests[] = {{"recursion", recursion}, {"asleep", asleep}, {"urgency", urgency}};
  return RUN_TEST(argc, argv, tests);
}
