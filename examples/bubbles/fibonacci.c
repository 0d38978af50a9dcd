// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Divide and conquer with bubbles: Fibonacci numbers by threads that are made recursively (Thibault 2005, section
// 5.1 and figure 5, measures this very program with and without bubbles).
//
//   fibonacci [NUMBER [CUT]]      with CUT levels of the recursion in threads; default 22 and 5
//
// Build: cc fibonacci.c $(pkg-config --cflags --libs bosk)
#include <bosk/bosk.h>
#include <stdio.h>
#include <stdlib.h>

// Every call of the library can fail. A program that cannot go on without a thread says so and ends.
static void check(int code, const char* what) {
  if (code >= 0) return;
  fprintf(stderr, "%s: %s\n", what, bosk_strerror(code));
  exit(1);
}

struct problem {
  int number;
  int levels;            // of threads below this one
  bosk_bubble_t inside;  // where this problem's threads live; null at the top
  long result;
};

static long sequential(int n) { return n < 2 ? n : sequential(n - 1) + sequential(n - 2); }

static void* solve(void* argument) {
  struct problem* p = argument;
  if (p->levels == 0 || p->number < 2) {
    p->result = sequential(p->number);
    return NULL;
  }
  // The two halves share more with each other, and with this thread that waits for them, than with the rest of the
  // recursion. That is what a bubble says. Nesting it in the bubble of the problem above keeps the whole branch
  // together: the scheduler may move a branch, but has no reason to tear it apart.
  bosk_bubble_t bubble;
  check(bosk_bubble_create(&bubble), "bosk_bubble_create");
  check(bosk_bubble_set_relation(bubble, BOSK_RELATION_DATA_SHARING), "bosk_bubble_set_relation");

  struct problem half[2];
  bosk_thread_t thread[2];
  for (int i = 0; i < 2; i++) {
    half[i] = (struct problem){p->number - 1 - i, p->levels - 1, bubble, 0};
    bosk_thread_attr_t attr;
    bosk_thread_attr_init(&attr);
    attr.bubble = bubble;
    // fib(n-1) is 1.6 times as much work as fib(n-2). Loads need no unit: policies look at proportions.
    attr.load = i == 0 ? 8 : 5;
    check(bosk_thread_create(&thread[i], &attr, solve, &half[i]), "bosk_thread_create");
  }
  // A bubble inside of another one goes where that one goes. The outermost one is woken on the machine.
  if (p->inside != NULL)
    check(bosk_bubble_insert_bubble(p->inside, bubble), "bosk_bubble_insert_bubble");
  else
    check(bosk_bubble_wake(bubble, NULL), "bosk_bubble_wake");

  // While this thread waits, its worker runs others: with luck the two that it waits for.
  for (int i = 0; i < 2; i++) check(bosk_thread_join(thread[i], NULL), "bosk_thread_join");
  check(bosk_bubble_destroy(bubble), "bosk_bubble_destroy");
  p->result = half[0].result + half[1].result;
  return NULL;
}

int main(int argc, char** argv) {
  struct problem all = {argc > 1 ? atoi(argv[1]) : 22, argc > 2 ? atoi(argv[2]) : 5, NULL, 0};
  if (all.number < 0 || all.number > 45 || all.levels < 0 || all.levels > 12) {
    fprintf(stderr, "usage: fibonacci [0 ... 45 [0 ... 12]]\n");
    return 2;
  }
  // Main solves the first problem itself: any pthread may make threads and bubbles, and wait for them.
  solve(&all);
  const long expected = sequential(all.number);
  printf("fib(%d) = %ld, %s\n", all.number, all.result,
         all.result == expected ? "as computed by one thread" : "WRONG");
  return all.result == expected ? 0 : 1;
}
