// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pair in a bubble, docs/threads.md: what the one sends has come to the other when the bubble is joined.
#include <bosk/bosk.h>
#include <stdatomic.h>

#include "fragment.h"

enum { LETTERS = 1000 };

static struct queue {
  atomic_int letter;
  long sum;
  bosk_bubble_t of[2];
} queue;

static void* producer(void* argument) {
  struct queue* to = argument;
  bosk_thread_get_bubble(bosk_thread_self(), &to->of[0]);
  for (int i = 1; i <= LETTERS; i++) {
    while (to->letter != 0) bosk_thread_yield();
    to->letter = i;
  }
  return NULL;
}

static void* consumer(void* argument) {
  struct queue* from = argument;
  bosk_thread_get_bubble(bosk_thread_self(), &from->of[1]);
  for (int i = 1; i <= LETTERS; i++) {
    while (from->letter == 0) bosk_thread_yield();
    from->sum += from->letter;
    from->letter = 0;
  }
  return NULL;
}

int main(void) {
  bosk_thread_t t[2];
#include "block.inc"
  EXPECT(queue.sum == LETTERS * (LETTERS + 1L) / 2);
  EXPECT(queue.of[0] == pair && queue.of[1] == pair);
  return 0;
}
