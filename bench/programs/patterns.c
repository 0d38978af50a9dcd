// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// patterns PATTERN PLACE SECONDS [SETTLES]: a thread for each CPU, which share memory in a known way, for as long as that; `bosk lab --locality=objects`
// counts what they use, from SETTLES seconds on. A block of memory for each thread, which its first user below touches first.
//   private     each thread writes to its own block, which the first thread of the process has filled
//   neighbours  each to its own, and to that of the next thread
//   far         pairs write to one block: a thread of the first half and one of the second
//   all         everybody to all blocks
//   pipeline    each writes to its own, and reads that of the thread before it
//   producer    pairs of neighbours: one writes, the other one reads
//   phases      far; at half time pairs of neighbours, which both write
// PLACE: none (left to others); threads that are bound to CPUs, node by node (compact), on all nodes in turn (scatter), or by lot (random, or random=SEED); oracle:
// those that share are bound to one node, and blocks are on the node of who uses them, also when that changes.
// PATTERN_KIB is the size of a block (256). Compiled with -fopenmp the threads are a team, of which the first thread is one; else of pthreads.
#include "nodes.h"

#include <pthread.h>

#include <bosk/markers.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { kMostThreads = 256 };
typedef enum { kPrivate, kNeighbours, kFar, kAll, kPipeline, kProducer, kPhases } Pattern;
static const char* const kPatterns[] = {"private",  "neighbours", "far",   "all",
                                        "pipeline", "producer",   "phases"};
typedef enum { kNone, kCompact, kScatter, kRandom, kOracle } Place;
static const char* const kPlaces[] = {"none", "compact", "scatter", "random", "oracle"};

static Pattern pattern;
static Place place;
static int threads;
static char* memory;
static size_t block_bytes;
static double began_ns, seconds, settles;
static pthread_barrier_t filled;
static int is_late;  // phases: the second one
static int is_over;

static NodeAtHand nodes[kMostNumaNodes];
static int node_count;
static int cpu_at[kMostThreads], node_at[kMostThreads];  // by place, node by node
static int lot[kMostThreads];

static void find_cpus(void) {
  node_count = nodes_at_hand(nodes);
  for (int node = 0; node < node_count; node++)
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
      if (CPU_ISSET(cpu, &nodes[node].cpus)) {
        if (threads == kMostThreads) bench_fail("patterns: more than 256 CPUs");
        cpu_at[threads] = cpu;
        node_at[threads++] = node;
      }
  if (threads < 2 || threads % 2 != 0) bench_fail("patterns: an even number of CPUs is needed");
}

/// Every thread another place.
static void draw(unsigned long seed) {
  for (int i = 0; i < threads; i++) {
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    const int j = (int)((seed >> 33) % (unsigned)(i + 1));
    lot[i] = lot[j];
    lot[j] = i;
  }
}

static int pairs_are_far(void) {
  return pattern == kFar || (pattern == kPhases && !__atomic_load_n(&is_late, __ATOMIC_RELAXED));
}

static int place_of(int me) {
  switch (place) {
    case kScatter: {
      // The nodes have the same number of CPUs, or the last threads go where there is room.
      int seen = 0;
      for (int turn = 0;; turn++)
        for (int node = 0; node < node_count; node++) {
          int left = turn;
          for (int at = 0; at < threads; at++)
            if (node_at[at] == node && left-- == 0 && seen++ == me) return at;
        }
    }
    case kRandom:
      return lot[me];
    case kOracle:
      return !pairs_are_far() ? me : me < threads / 2 ? 2 * me : 2 * (me - threads / 2) + 1;
    default:
      return me;
  }
}

static void go_to_place(int me) {
  if (place == kNone) return;
  cpu_set_t cpu;
  CPU_ZERO(&cpu);
  CPU_SET(cpu_at[place_of(me)], &cpu);
  go_to_cpus(&cpu);
}

/// The block of a pair is used by two, others by the thread of their number first.
static int first_user(int block) {
  if (pattern == kFar || pattern == kPhases) return block;
  return pattern == kProducer ? 2 * block : block;
}

static int blocks(void) {
  return pattern == kFar || pattern == kPhases || pattern == kProducer ? threads / 2 : threads;
}

static void fill(int block) { memset(memory + (size_t)block * block_bytes, 1, block_bytes); }

static void use(int me, int block, int writes) {
  volatile char* at = memory + (size_t)block * block_bytes;
  // Threads that share have cells of their own.
  const size_t cell = (size_t)me % 64;
  if (writes)
    for (size_t i = 0; i < block_bytes; i += 64) ++at[i + cell];
  else
    for (size_t i = 0; i < block_bytes; i += 64) (void)at[i + cell];
}

static void begin(void) {
  const char* objects = getenv("BOSK_LAB_OBJECTS");
  FILE* file = objects != NULL ? fopen(objects, "a") : NULL;
  if (file != NULL) {
    fprintf(file, "%p %zu blocks\n", (void*)memory, (size_t)blocks() * block_bytes);
    fclose(file);
    BOSK_LAB_MARK(BOSK_LAB_OBJECTS);
  }
  began_ns = now_ns();
  if (settles == 0) BOSK_LAB_MARK(BOSK_LAB_BEGIN);
}

static void work(int me) {
  go_to_place(me);
  if (pattern != kPrivate)
    for (int block = 0; block < blocks(); block++)
      if (first_user(block) == me) fill(block);
  pthread_barrier_wait(&filled);
  if (me == 0) begin();
  pthread_barrier_wait(&filled);
  int was_late = 0;
  for (long round = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); round++) {
    const int late = __atomic_load_n(&is_late, __ATOMIC_RELAXED);
    if (late != was_late) go_to_place(me);
    was_late = late;
    switch (pattern) {
      case kPrivate:
        use(me, me, 1);
        break;
      case kNeighbours:
        use(me, me, 1);
        use(me, (me + 1) % threads, 1);
        break;
      case kFar:
        use(me, me % (threads / 2), 1);
        break;
      case kAll:
        use(me, (int)((me + round) % threads), 1);
        break;
      case kPipeline:
        if (me > 0) use(me, me - 1, 0);
        use(me, me, 1);
        break;
      case kProducer:
        use(me, me / 2, me % 2 == 0);
        break;
      case kPhases:
        use(me, late ? me / 2 : me % (threads / 2), 1);
        break;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();  // the lab's CPUs take turns
#endif
    if (me != 0) continue;
    const double now = (now_ns() - began_ns) / 1e9;
    if (settles > 0 && now >= settles) {
      settles = 0;
      BOSK_LAB_MARK(BOSK_LAB_BEGIN);
    }
    if (pattern == kPhases && now >= seconds / 2) __atomic_store_n(&is_late, 1, __ATOMIC_RELAXED);
    if (now < seconds) continue;
    BOSK_LAB_MARK(BOSK_LAB_END);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  }
}

#ifndef _OPENMP
static void* run_thread(void* me) {
  work((int)(long)me);
  return NULL;
}
#endif

static int find(const char* word, const char* const* words, size_t count, const char* what) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(word, words[i]) == 0) return (int)i;
  fprintf(stderr, "patterns: no %s %s\n", what, word);
  exit(2);
}

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) bench_fail("usage: patterns PATTERN PLACE SECONDS [SETTLES]");
  pattern = (Pattern)find(argv[1], kPatterns, sizeof kPatterns / sizeof kPatterns[0], "pattern");
  char* seed = strchr(argv[2], '=');
  if (seed != NULL) *seed++ = '\0';
  place = (Place)find(argv[2], kPlaces, sizeof kPlaces / sizeof kPlaces[0], "place");
  seconds = atof(argv[3]);
  settles = argc == 5 ? atof(argv[4]) : 0;
  const char* kib = getenv("PATTERN_KIB");
  block_bytes = (kib != NULL ? (size_t)atol(kib) : 256) << 10;
  find_cpus();
  draw(seed != NULL ? strtoul(seed, NULL, 10) : 1);
  const size_t huge = 2u << 20;
  memory = aligned_alloc(huge, ((size_t)threads * block_bytes + huge - 1) / huge * huge);
  if (memory == NULL) bench_fail("patterns: out of memory");
  for (int block = 0; block < blocks() && place == kOracle; block++)
    put_on_nodes(memory + (size_t)block * block_bytes, block_bytes, MPOL_BIND,
                 1UL << nodes[node_at[place_of(first_user(block))]].node);
  if (pattern == kPrivate)
    for (int block = 0; block < threads; block++) fill(block);
  pthread_barrier_init(&filled, NULL, (unsigned)threads);
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
  work(omp_get_thread_num());
#else
  pthread_t running[kMostThreads];
  for (long i = 0; i < threads; i++)
    if (pthread_create(&running[i], NULL, run_thread, (void*)i) != 0)
      bench_fail("patterns: no thread");
  for (int i = 0; i < threads; i++) pthread_join(running[i], NULL);
#endif
  return 0;
}
