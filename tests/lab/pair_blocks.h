// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The work of pairs of threads that share a block: in each round a member writes a part
// of its half and reads what its partner wrote in the round before. How long members take is no pattern, so that
// there is always one who waits, and a processor that looks for something else.
#pragma once

#include "numa.h"

#include <stdint.h>

enum {
  kMostPairs = 64,
  kHalf = 4 * kPage / sizeof(double),
  kMostSweeps = 5,
  kSweep = 4,
  kPiece = 2500
};

struct block {
  double values[2][kHalf];  ///< whole pages each
};

static unsigned pairs;
static struct block* blocks;
static int home[kMostPairs][2];  ///< node of the half, once it has been touched
static int distances[kMostNodes][kMostNodes];
static long samples, together, local, distance;
static volatile unsigned long sink;

/// What the firmware says, as the kernel has it.
static void read_distances(void) {
  for (int node = 0; node < kMostNodes; ++node) {
    char path[80];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/distance", node);
    FILE* file = fopen(path, "r");
    if (file == NULL) return;
    for (int to = 0; to < kMostNodes && fscanf(file, "%d", &distances[node][to]) == 1;) ++to;
    fclose(file);
  }
}

/// A line for each block where BOSK_LAB_OBJECTS names a file (docs/locality.md).
static void tell_objects(void) {
  const char* path = getenv("BOSK_LAB_OBJECTS");
  if (path == NULL) return;
  FILE* file = fopen(path, "a");
  CHECK(file != NULL, "%s: %s", path, strerror(errno));
  for (unsigned i = 0; i < pairs; ++i)
    fprintf(file, "%p %zu pair %u\n", (void*)&blocks[i], sizeof blocks[i], i);
  fclose(file);
}

static void make_blocks(unsigned count) {
  CHECK(count > 0 && count <= kMostPairs, "%u pairs", count);
  pairs = count;
  blocks = (struct block*)fresh_small_pages(pairs * sizeof *blocks);
  read_distances();
  tell_objects();
}

static unsigned my_node(void) {
  unsigned cpu;
  unsigned node;
  where_am_i(&cpu, &node);
  return node;
}

/// The lab's CPUs take turns, of 100 ms if need be, and one that pauses gives its turn away. So that they run side by side,
/// as those of real machines do, each pauses often.
static void give_turn(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void stay_busy(unsigned sweeps) {
  for (unsigned i = 0; i < sweeps * kSweep; ++i) {
    for (unsigned j = 0; j < kPiece; ++j) sink = j;
    give_turn();
  }
}

/// 1 … kMostSweeps.
static unsigned sweeps_of(unsigned pair, unsigned round, unsigned me) {
  uint32_t h = (pair * 2 + me) * 2654435761u ^ (round + 1) * 2246822519u;
  h ^= h >> 15;
  h *= 3266489917u;
  return (h >> 16) % kMostSweeps + 1;
}

static void first_touch(unsigned pair, unsigned me) {
  for (size_t i = 0; i < kHalf; ++i) blocks[pair].values[me][i] = 0;
  nodes_of_pages((char*)blocks[pair].values[me], 1, &home[pair][me]);
}

/// Even rounds read the part that odd ones write, and the other way round: nobody reads what is being written.
static void work(unsigned pair, unsigned round, unsigned me) {
  struct block* block = &blocks[pair];
  const size_t from = round % 2 * (kHalf / 2);
  const size_t to = kHalf / 2 - from;
  const unsigned sweeps = sweeps_of(pair, round, me);
  for (unsigned sweep = 0; sweep < sweeps; ++sweep) {
    for (size_t i = 0; i < kHalf / 2; ++i)
      block->values[me][to + i] = block->values[1 - me][from + i] + 1;
    stay_busy(1);
  }
}

/// Member `me` ran on `node`, its partner on `other`.
static void count(unsigned pair, unsigned me, unsigned node, unsigned other) {
  __atomic_fetch_add(&samples, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&together, node == other, __ATOMIC_RELAXED);
  __atomic_fetch_add(&local, (int)node == home[pair][me], __ATOMIC_RELAXED);
  if (node != other) __atomic_fetch_add(&distance, distances[other][node], __ATOMIC_RELAXED);
}

/// Each round adds one to what the round before has written.
static void check_values(unsigned rounds) {
  for (unsigned pair = 0; pair < pairs; ++pair)
    for (int half = 0; half < 2; ++half)
      for (size_t i = 0; i < kHalf; ++i) {
        const int in_last_round = (i >= kHalf / 2) == (rounds % 2 == 1);
        const double expected = in_last_round ? rounds : rounds - 1;
        const double found = blocks[pair].values[half][i];
        CHECK(found == expected, "pair %u: %g, not %g", pair, found, expected);
      }
}
