// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gangs that take turns: gangs HOW SIZES PIECES. A bubble of threads that compute for each of SIZES (2,3,1 and so on),
// more than fit on the machine. HOW: `policy`, what BOSK_POLICY says decides; `relation`, the bubbles are of relation
// gang, under whatever policy.
//
// After each piece of its work a thread asks bosk who runs (bosk_bubble_get_stats), and notes whether all that are left of
// its gang do, and whether a gang waits for which there are idle processors enough. A piece is a thread's work, so what
// is counted is the gang's running time, however long the machine's own processors take for it. Counted is only while
// a gang waits: later there is nothing to choose. Prints for check_policies.py
//   gangs: N samples, N whole, N wasted, N turns
// `turns`: how often a thread came to a processor where another gang's was before it; 0 would say that nothing took turns.
#include "numa.h"

#include <bosk/bosk.h>
#include <bosk/topology.h>

#define OK(call)                                                      \
  do {                                                                \
    const int error_ = (call);                                        \
    CHECK(error_ == BOSK_OK, "%s: %s", #call, bosk_strerror(error_)); \
  } while (0)

enum { kMostGangs = 16, kMostPus = 256, kPiece = 20000, kPause = 2000 };

static unsigned gangs, pieces;
static unsigned sizes[kMostGangs];
static int pus;
static bosk_bubble_t all;
static bosk_bubble_t bubbles[kMostGangs];
static int
    last_on[kMostPus];  ///< which gang a processor ran last, by the threads' own word; 0: none yet
static long samples, whole, wasted, turns;
static volatile unsigned long sink;

/// The lab's CPUs take turns, and one that pauses gives its turn away: so they run side by side.
static void compute(void) {
  for (int i = 0; i < kPiece; ++i) {
    sink = (unsigned long)i;
#if defined(__x86_64__)
    if (i % kPause == 0) __builtin_ia32_pause();
#endif
  }
}

static bosk_stats_t stats_of(bosk_bubble_t bubble) {
  bosk_stats_t stats = {.size = sizeof stats};
  OK(bosk_bubble_get_stats(bubble, &stats));
  return stats;
}

static void look(unsigned gang) {
  const int pu = bosk_here();
  CHECK(pu >= 0 && pu < kMostPus, "on processor %d", pu);
  const int before = __atomic_exchange_n(&last_on[pu], (int)gang + 1, __ATOMIC_RELAXED);
  const bosk_stats_t mine = stats_of(bubbles[gang]);
  const unsigned running = stats_of(all).running;
  const unsigned idle = running < (unsigned)pus ? (unsigned)pus - running : 0;
  unsigned waiting = 0;
  int fits = 0;
  for (unsigned other = 0; other < gangs; ++other) {
    const bosk_stats_t there = stats_of(bubbles[other]);
    if (there.threads == 0 || there.running != 0) continue;
    ++waiting;
    fits |= there.threads <= idle;
  }
  if (waiting == 0) return;
  __atomic_fetch_add(&turns, before != 0 && before != (int)gang + 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&samples, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&whole, mine.running == mine.threads, __ATOMIC_RELAXED);
  __atomic_fetch_add(&wasted, fits, __ATOMIC_RELAXED);
}

static void* run(void* argument) {
  const unsigned gang = (unsigned)(uintptr_t)argument;
  for (unsigned piece = 0; piece < pieces; ++piece) {
    compute();
    look(gang);
  }
  return NULL;
}

/// The sum of the sizes.
static unsigned read_sizes(const char* list) {
  unsigned sum = 0;
  for (const char* at = list; *at != '\0' && gangs < kMostGangs;) {
    char* end;
    sizes[gangs] = (unsigned)strtoul(at, &end, 10);
    CHECK(end != at && sizes[gangs] != 0, "%s: not sizes of gangs", list);
    sum += sizes[gangs++];
    at = *end == ',' ? end + 1 : end;
  }
  return sum;
}

int main(int argc, char** argv) {
  CHECK(argc == 4 && atoi(argv[3]) > 0, "usage: gangs policy|relation SIZES PIECES");
  const int by_relation = strcmp(argv[1], "relation") == 0;
  const unsigned threads = read_sizes(argv[2]);
  pieces = (unsigned)atoi(argv[3]);
  pus = bosk_topo_pus();
  CHECK(pus > 0 && pus <= kMostPus && threads > (unsigned)pus,
        "%d processors: nobody would have to wait", pus);
  OK(bosk_bubble_create(&all));
  for (unsigned gang = 0; gang < gangs; ++gang) {
    OK(bosk_bubble_create(&bubbles[gang]));
    if (by_relation) OK(bosk_bubble_set_relation(bubbles[gang], BOSK_RELATION_GANG));
    OK(bosk_bubble_insert_bubble(all, bubbles[gang]));
    bosk_thread_attr_t attr;
    OK(bosk_thread_attr_init(&attr));
    attr.bubble = bubbles[gang];
    attr.detached = 1;
    for (unsigned i = 0; i < sizes[gang]; ++i)
      OK(bosk_thread_create(NULL, &attr, run, (void*)(uintptr_t)gang));
  }
  OK(bosk_bubble_wake(all, NULL));
  OK(bosk_bubble_join(all));
  for (unsigned gang = 0; gang < gangs; ++gang) OK(bosk_bubble_destroy(bubbles[gang]));
  OK(bosk_bubble_destroy(all));
  CHECK(samples > 0, "no gang ever waited");
  printf("gangs: %ld samples, %ld whole, %ld wasted, %ld turns\n", samples, whole, wasted, turns);
  return passed();
}
