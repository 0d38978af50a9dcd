// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that poll for their turn: each of them is reached in the end by whoever runs the others, on whatever queue it
// waits. Arguments: where they wait ("processors": on those of different ones; "levels": of different levels of the
// machine), and "yield" or "spin", for how they poll.
#include "bosk_check.h"

enum { kThreads = 7, kRounds = 4 };

static int whose, yields, ended;

static void* take_turns(void* number) {
  const int mine = (int)(intptr_t)number;
  for (int round = 0; round < kRounds; ++round) {
    while (__atomic_load_n(&whose, __ATOMIC_ACQUIRE) != round * kThreads + mine)
      if (yields) OK(bosk_thread_yield());
    __atomic_add_fetch(&whose, 1, __ATOMIC_RELEASE);
  }
  __atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
  return NULL;
}

/// A policy deals them out.
static void on_processors(bosk_thread_t* threads) {
  bosk_bubble_t bubble;
  OK(bosk_bubble_create(&bubble));
  bosk_thread_attr_t attr;
  bosk_thread_attr_init(&attr);
  attr.bubble = bubble;
  for (intptr_t i = 0; i < kThreads; ++i)
    OK(bosk_thread_create(&threads[i], &attr, take_turns, (void*)i));
  OK(bosk_bubble_wake(bubble, NULL));
  OK(bosk_bubble_join(bubble));
}

/// Two go to the queue of the processor that they ran on, others to queues further away.
static void on_levels(bosk_thread_t* threads) {
  static const char* const kLevels[kThreads] = {"pu", "pu", "core", "core", "node", "node", NULL};
  for (intptr_t i = 0; i < kThreads; ++i) {
    bosk_thread_attr_t attr;
    bosk_thread_attr_init(&attr);
    attr.affinity = kLevels[i];
    OK(bosk_thread_create(&threads[i], &attr, take_turns, (void*)i));
  }
}

int main(int argc, char** argv) {
  CHECK(argc == 3, "usage: bosk_turns processors|levels yield|spin");
  yields = strcmp(argv[2], "yield") == 0;
  bosk_thread_t threads[kThreads];
  (strcmp(argv[1], "levels") == 0 ? on_levels : on_processors)(threads);
  for (int i = 0; i < kThreads; ++i) OK(bosk_thread_join(threads[i], NULL));
  CHECK(whose == kRounds * kThreads, "%d turns", whose);
  CHECK(ended == kThreads, "%d threads ended", ended);
  return passed();
}
