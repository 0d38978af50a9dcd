// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accesses whose matrix is known: every node has an array bound to it and a thread on a CPU of it, and
// every thread loads from and stores to every array as often as a formula says. Prints the matrices that
// `bosk lab --locality` must find, as JSON, for locality_check.py.
//
//   known_matrix accesses        every access counts; any cache would spoil the numbers
//   known_matrix moves           pages change their node while threads use them
//   known_matrix caches LINE PRIVATE SHARED
//                                for the cache model with these sizes in bytes: sweeps over arrays that
//                                fit nowhere, over arrays that fit in a private cache, and lines that
//                                go to and fro between nodes
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bosk/markers.h>

#define CHECK(condition, ...)                 \
  do {                                        \
    if (!(condition)) {                       \
      fprintf(stderr, "known_matrix: ");      \
      fprintf(stderr, __VA_ARGS__);           \
      fprintf(stderr, " (%s)\n", #condition); \
      exit(1);                                \
    }                                         \
  } while (0)

enum { kMostNodes = 64, kWord = 8, kBind = 2 /* MPOL_BIND */ };

static int nodes;
static int cpu_of[kMostNodes];
static size_t small_bytes;  // fits in a private cache
static size_t large_bytes;  // fits in no cache
static uint64_t* small[kMostNodes];
static uint64_t* large[kMostNodes];

// What must be counted: [kind][CPU's node][memory's node].
enum { kLoads, kStores, kWriteBacks, kKinds };
static uint64_t expected[kKinds][kMostNodes][kMostNodes];

static void read_machine(void) {
  for (; nodes < kMostNodes; ++nodes) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", nodes);
    FILE* file = fopen(path, "re");
    if (!file) break;
    CHECK(fscanf(file, "%d", &cpu_of[nodes]) == 1, "node %d has no CPU", nodes);
    fclose(file);
  }
  CHECK(nodes >= 2, "%d nodes; run me in the lab", nodes);
}

static uint64_t* on_node(int node, size_t bytes) {
  void* block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(block != MAP_FAILED, "%zu bytes: %s", bytes, strerror(errno));
  unsigned long mask = 1UL << node;
  CHECK(syscall(SYS_mbind, block, bytes, kBind, &mask, kMostNodes + 1UL, 0UL) == 0, "mbind: %s",
        strerror(errno));
  memset(block, 0, bytes);
  return block;
}

static void pin(int node) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(cpu_of[node], &mask);
  CHECK(sched_setaffinity(0, sizeof mask, &mask) == 0, "CPU %d: %s", cpu_of[node], strerror(errno));
}

// One access of a word for each turn and none besides: the counters live in registers.
static void load_words(const uint64_t* words, size_t count, uint64_t times) {
  const uint64_t* word = words;
  const uint64_t* end = words + count;
  for (uint64_t i = 0; i < times; ++i) {
    uint64_t value;
    __asm__ volatile("movq (%1), %0" : "=r"(value) : "r"(word) : "memory");
    if (++word == end) word = words;
  }
}

static void store_words(uint64_t* words, size_t count, uint64_t times) {
  uint64_t* word = words;
  uint64_t* end = words + count;
  for (uint64_t i = 0; i < times; ++i) {
    __asm__ volatile("movq %1, (%0)" : : "r"(word), "r"(i) : "memory");
    if (++word == end) word = words;
  }
}

static uint64_t loads_of(int cpu_node, int memory_node) {
  return 100000 * (uint64_t)(1 + (cpu_node * 7 + memory_node * 3) % 11);
}

static uint64_t stores_of(int cpu_node, int memory_node) {
  return 50000 * (uint64_t)(1 + (cpu_node * 5 + memory_node) % 7);
}

static void* row(void* argument) {
  int node = (int)(intptr_t)argument;
  pin(node);
  for (int memory = 0; memory < nodes; ++memory) {
    load_words(large[memory], large_bytes / kWord, loads_of(node, memory));
    store_words(large[memory], large_bytes / kWord, stores_of(node, memory));
  }
  return NULL;
}

static void every_access(void) {
  large_bytes = 1 << 20;
  for (int node = 0; node < nodes; ++node) large[node] = on_node(node, large_bytes);
  pthread_t threads[kMostNodes];
  BOSK_LAB_MARK(BOSK_LAB_BEGIN);
  for (int node = 0; node < nodes; ++node) {
    CHECK(pthread_create(&threads[node], NULL, row, (void*)(intptr_t)node) == 0, "thread");
  }
  for (int node = 0; node < nodes; ++node) pthread_join(threads[node], NULL);
  BOSK_LAB_MARK(BOSK_LAB_END);
  for (int node = 0; node < nodes; ++node) {
    for (int memory = 0; memory < nodes; ++memory) {
      expected[kLoads][node][memory] = loads_of(node, memory);
      expected[kStores][node][memory] = stores_of(node, memory);
    }
  }
}

// --- pages that move

enum { kMovedPages = 64, kMovedBytes = kMovedPages * 4096, kEachTime = 200000 };

static pthread_barrier_t moved;

// Loads before the pages move and after, on a CPU of the node; the translations of all pages are known by then.
static void* user(void* argument) {
  int node = (int)(intptr_t)argument;
  pin(node);
  load_words(small[0], kMovedBytes / kWord, kEachTime);
  pthread_barrier_wait(&moved);  // all have used it
  pthread_barrier_wait(&moved);  // it has moved
  load_words(small[0], kMovedBytes / kWord, kEachTime);
  return NULL;
}

static void move_to(int node, void* block) {
  void* pages[kMovedPages];
  int to[kMovedPages];
  int status[kMovedPages];
  for (int i = 0; i < kMovedPages; ++i) {
    pages[i] = (char*)block + i * 4096;
    to[i] = node;
  }
  CHECK(syscall(SYS_move_pages, 0, (unsigned long)kMovedPages, pages, to, status,
                2 /* MPOL_MF_MOVE */) == 0,
        "move_pages: %s", strerror(errno));
  for (int i = 0; i < kMovedPages; ++i) {
    CHECK(status[i] == node, "page %d is on node %d", i, status[i]);
  }
}

static void moving_pages(void) {
  int last = nodes - 1;
  small[0] = on_node(0, kMovedBytes);
  // The test moves it itself: of a huge page the rest would come along.
  CHECK(madvise(small[0], kMovedBytes, MADV_NOHUGEPAGE) == 0, "madvise");
  CHECK(pthread_barrier_init(&moved, NULL, (unsigned)nodes + 1) == 0, "barrier");
  pthread_t threads[kMostNodes];
  BOSK_LAB_MARK(BOSK_LAB_BEGIN);
  for (int node = 0; node < nodes; ++node) {
    CHECK(pthread_create(&threads[node], NULL, user, (void*)(intptr_t)node) == 0, "thread");
    expected[kLoads][node][0] += kEachTime;
    expected[kLoads][node][last] += kEachTime;
  }
  pthread_barrier_wait(&moved);
  move_to(last, small[0]);
  pthread_barrier_wait(&moved);
  for (int node = 0; node < nodes; ++node) pthread_join(threads[node], NULL);

  // Another page at the same address.
  pin(0);
  munmap(small[0], kMovedBytes);
  for (int memory = 0; memory < nodes; ++memory) {
    void* block = mmap(small[0], kMovedBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    unsigned long mask = 1UL << memory;
    CHECK(block == small[0], "mmap: %s", strerror(errno));
    CHECK(syscall(SYS_mbind, block, (size_t)kMovedBytes, kBind, &mask, kMostNodes + 1UL, 0UL) == 0,
          "mbind: %s", strerror(errno));
    store_words(block, kMovedBytes / kWord, kEachTime);
    expected[kStores][0][memory] += kEachTime;
  }
  BOSK_LAB_MARK(BOSK_LAB_END);
}

// --- caches

// Every line of the block once, by a CPU of the node.
static void sweep(int node, uint64_t* block, size_t bytes, size_t line, int store) {
  pin(node);
  for (size_t at = 0; at < bytes / kWord; at += line / kWord) {
    if (store) {
      store_words(block + at, 1, 1);
    } else {
      load_words(block + at, 1, 1);
    }
  }
}

static void through_caches(size_t line, size_t private_bytes, size_t shared_bytes) {
  small_bytes = private_bytes / 4;
  large_bytes = 8 * (shared_bytes > private_bytes ? shared_bytes : private_bytes);
  for (int node = 0; node < nodes; ++node) {
    small[node] = on_node(node, small_bytes);
    large[node] = on_node(node, large_bytes);
  }
  uint64_t few = small_bytes / line;
  uint64_t many = large_bytes / line;
  BOSK_LAB_MARK(BOSK_LAB_BEGIN);
  for (int node = 0; node < nodes; ++node) {
    int next = (node + 1) % nodes;
    // Fits nowhere: every line comes from memory each time.
    for (int turn = 0; turn < 3; ++turn) sweep(node, large[next], large_bytes, line, 0);
    expected[kLoads][node][next] += 3 * many;
    // Stored lines go back to memory when others push them out: all but the last that fit.
    sweep(node, large[node], large_bytes, line, 1);
    sweep(node, large[next], large_bytes, line, 0);
    expected[kStores][node][node] += many;
    expected[kWriteBacks][node][node] += many;
    expected[kLoads][node][next] += many;
    // Fits: fetched once.
    for (int turn = 0; turn < 5; ++turn) sweep(node, small[node], small_bytes, line, turn & 1);
    expected[kLoads][node][node] += few;
    // To and fro. The next node fetches it, and this one writes its stores back.
    sweep(next, small[node], small_bytes, line, 0);
    expected[kLoads][next][node] += few;
    expected[kWriteBacks][node][node] += few;
    // This node still has it.
    sweep(node, small[node], small_bytes, line, 0);
    // A store there takes it away from here.
    sweep(next, small[node], small_bytes, line, 1);
    sweep(node, small[node], small_bytes, line, 0);
    expected[kLoads][node][node] += few;
    expected[kWriteBacks][next][node] += few;
  }
  BOSK_LAB_MARK(BOSK_LAB_END);
}

static void print_expected(void) {
  static const char* const kNames[kKinds] = {"loads", "stores", "write_backs"};
  printf("{\"nodes\": %d", nodes);
  for (int kind = 0; kind < kKinds; ++kind) {
    printf(", \"%s\": [", kNames[kind]);
    for (int node = 0; node < nodes; ++node) {
      for (int memory = 0; memory < nodes; ++memory) {
        printf("%s%llu",
               memory ? ", "
               : node ? ", ["
                      : "[",
               (unsigned long long)expected[kind][node][memory]);
      }
      printf("]");
    }
    printf("]");
  }
  printf("}\n");
}

int main(int argc, char** argv) {
  read_machine();
  if (argc == 2 && strcmp(argv[1], "accesses") == 0) {
    every_access();
  } else if (argc == 2 && strcmp(argv[1], "moves") == 0) {
    moving_pages();
  } else if (argc == 5 && strcmp(argv[1], "caches") == 0) {
    through_caches(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10),
                   strtoul(argv[4], NULL, 10));
  } else {
    fprintf(stderr, "usage: known_matrix accesses | moves | caches LINE PRIVATE SHARED\n");
    return 2;
  }
  print_expected();
  return 0;
}
