// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fibonacci numbers by threads that are made recursively, one for each call (Thibault 2005, section 5.1 and figure
// 5), with bosk's own interface. Case "list": all threads go to the machine's list. Case "bubbles": the two
// children of a call live in a bubble, which is nested in the bubble that the caller lives in.
//
//   fibonacci list|bubbles NUMBER [WORK]   time / threads
//   fibonacci serial NUMBER WORK           the same calls by one thread: time / calls
//   fibonacci distance NUMBER WORK LIMIT   of how many threads did the first instruction run on another node than
//                                          the caller's last one before it: with bubbles at most LIMIT times the
//                                          share without, while more than one node runs them. WORK: turns of
//                                          a loop in each call
#include <bosk/bosk.h>
#include <bosk/topology.h>

#include "bench.h"

// So that it can be linked and started where the library is not bosk, and say so.
#pragma weak bosk_thread_attr_init_sized
#pragma weak bosk_thread_create
#pragma weak bosk_thread_join
#pragma weak bosk_bubble_create
#pragma weak bosk_bubble_insert_bubble
#pragma weak bosk_bubble_wake
#pragma weak bosk_bubble_destroy
#pragma weak bosk_strerror
#pragma weak bosk_topo_level
#pragma weak bosk_topo_domains
#pragma weak bosk_here_in

typedef struct {
  int number;
  int caller_node;       // -1: this thread is not counted
  bosk_bubble_t around;  // that this call's thread lives in; null: none
  long result;
} Call;

static int with_bubbles;
static int work;
static int node_level = -1;  // -1: nobody counts
enum { kMostNodes = 64 };
static long threads, far, on_node[kMostNodes];

static void check(int code, const char* what) {
  if (code >= 0) return;
  fprintf(stderr, "%s: %s\n", what, bosk_strerror(code));
  bench_fail("fibonacci: bosk refuses");
}

static int my_node(void) {
  const int node = bosk_here_in(node_level);
  check(node, "bosk_here_in");
  return node;
}

static void* call(void* argument) {
  Call* c = argument;
  if (c->caller_node >= 0) {
    __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
    const int node = my_node();
    __atomic_fetch_add(&far, node != c->caller_node, __ATOMIC_RELAXED);
    __atomic_fetch_add(&on_node[node % kMostNodes], 1, __ATOMIC_RELAXED);
  }
  for (int i = 0; i < work; i++) BENCH_KEEP();
  c->result = c->number;
  if (c->number < 2) return NULL;

  bosk_thread_attr_t attributes;
  check(bosk_thread_attr_init(&attributes), "bosk_thread_attr_init");
  if (with_bubbles) check(bosk_bubble_create(&attributes.bubble), "bosk_bubble_create");
  Call child[2];
  bosk_thread_t thread[2];
  const int node = node_level >= 0 ? my_node() : -1;
  for (int i = 0; i < 2; i++) {
    child[i] = (Call){c->number - 1 - i, node, attributes.bubble, 0};
    check(bosk_thread_create(&thread[i], &attributes, call, &child[i]), "bosk_thread_create");
  }
  if (with_bubbles) {
    if (c->around != NULL)
      check(bosk_bubble_insert_bubble(c->around, attributes.bubble), "bosk_bubble_insert_bubble");
    else
      check(bosk_bubble_wake(attributes.bubble, NULL), "bosk_bubble_wake");
  }
  for (int i = 0; i < 2; i++) check(bosk_thread_join(thread[i], NULL), "bosk_thread_join");
  if (with_bubbles) check(bosk_bubble_destroy(attributes.bubble), "bosk_bubble_destroy");
  c->result = child[0].result + child[1].result;
  return NULL;
}

static long plain(int n) { return n < 2 ? n : plain(n - 1) + plain(n - 2); }

static long serial(int n) {
  for (int i = 0; i < work; i++) BENCH_KEEP();
  return n < 2 ? n : serial(n - 1) + serial(n - 2);
}

static double run_serial(void* context, long count) {
  const int number = *(const int*)context;
  const long expected = plain(number);
  const double start = now_ns();
  for (long i = 0; i < count; i++)
    if (serial(number) != expected) bench_fail("fibonacci: wrong result");
  return now_ns() - start;
}

static double run(void* context, long count) {
  const int number = *(const int*)context;
  const long expected = plain(number);
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
    bosk_thread_t thread;
    Call first = {number, -1, NULL, 0};
    check(bosk_thread_create(&thread, NULL, call, &first), "bosk_thread_create");
    check(bosk_thread_join(thread, NULL), "bosk_thread_join");
    if (first.result != expected) bench_fail("fibonacci: wrong result");
  }
  return now_ns() - start;
}

/// Per cent of the threads that began on another node than where their caller made them.
static double share_far(int number, int bubbles) {
  enum { kRounds = 10 };
  with_bubbles = bubbles;
  run(&number, 1);  // makes workers
  threads = far = 0;
  memset(on_node, 0, sizeof on_node);
  run(&number, kRounds);
  const int nodes = bosk_topo_domains(node_level);
  check(nodes, "bosk_topo_domains");
  long most = 0;
  for (int i = 0; i < nodes && i < kMostNodes; i++)
    if (on_node[i] > most) most = on_node[i];
  const char* version = bubbles ? "bubbles" : "list";
  const double share = 100.0 * (double)far / (double)threads;
  printf("%s-far %.4g %%\n", version, share);
  // Who ran them all on one node would have no thread far away.
  printf("%s-fullest-node %.4g x\n", version, (double)most * nodes / (double)threads);
  fflush(stdout);
  if (most == threads && nodes > 1) bench_fail("fibonacci: one node has run all threads");
  return share;
}

int main(int argc, char** argv) {
  if (argc < 3) bench_fail("fibonacci CASE NUMBER…; see rows.py for the cases");
  const int one_thread = strcmp(argv[1], "serial") == 0;
  if (bosk_thread_create == NULL && !one_thread)
    bench_fail("fibonacci: the libgomp.so.1 that is loaded is not bosk");
  int number = bench_int(argc, argv, 2);
  if (strcmp(argv[1], "distance") == 0) {
    work = bench_int(argc, argv, 3);
    const double limit = argc > 4 ? atof(argv[4]) : 0;
    if (limit <= 0) bench_fail("fibonacci: a limit must be positive");
    node_level = bosk_topo_level("node");
    check(node_level, "bosk_topo_level");
    const double list = share_far(number, 0);
    const double bubbles = share_far(number, 1);
    // Where nobody is far from the caller, nothing was compared.
    if (list < 5) bench_fail("fibonacci: too few are far without bubbles");
    bench_print("far-ratio", bubbles / list, "ratio");
    if (bubbles > limit * list) bench_fail("fibonacci: too many are far with bubbles");
    return 0;
  }
  work = argc > 3 ? atoi(argv[3]) : 0;
  with_bubbles = strcmp(argv[1], "bubbles") == 0;
  if (!with_bubbles && !one_thread && strcmp(argv[1], "list") != 0)
    bench_fail("fibonacci: no such case");
  // fib(n) takes so many calls.
  const long calls = 2 * plain(number + 1) - 1;
  const BenchRun runs = one_thread ? run_serial : run;
  bench_print(argv[1], bench_measure(runs, &number) / (double)calls / 1e3, "us");
  return 0;
}
