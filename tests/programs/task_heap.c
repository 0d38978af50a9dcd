// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A task spins until a later one has run, and both use the heap from then on. Where one thread runs both,
// taking turns, neither may be set aside in the middle of malloc for the other. (Stock libgomp cannot set the
// first task aside.)
#include "check.h"

#include <omp.h>

enum { kBlocks = 12, kLoops = 600 };
static int begun[64];

/// Most of the time goes to realloc, which copies with the arena's lock in hand.
static void use_heap(unsigned seed) {
  unsigned char* blocks[kBlocks] = {NULL};
  size_t sizes[kBlocks] = {0};
  for (int i = 0; i < kLoops; ++i) {
    seed = seed * 1103515245u + 12345u;
    const int at = (int)(seed >> 8) % kBlocks;
    if (blocks[at] != NULL)
      CHECK(blocks[at][0] == at && blocks[at][sizes[at] - 1] == at, "block %d was overwritten", at);
    if (i % 7 == 6) {
      free(blocks[at]);
      blocks[at] = NULL;
    }
    const size_t size = 30000 + (seed >> 16) % 60000;
    blocks[at] = realloc(blocks[at], size);
    CHECK(blocks[at] != NULL, "realloc");
    sizes[at] = size;
    blocks[at][0] = blocks[at][size - 1] = (unsigned char)at;
  }
  for (int at = 0; at < kBlocks; ++at) free(blocks[at]);
}

__attribute__((noinline)) static void wait_for_begin(int member, int round) {
  while (__atomic_load_n(&begun[member], __ATOMIC_ACQUIRE) <= round) {
  }
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 2, rounds = argc > 2 ? atoi(argv[2]) : 5;
  CHECK(threads > 0 && threads <= 64, "%d threads", threads);
  int done = 0;
#pragma omp parallel num_threads(threads) shared(done)
  for (int round = 0; round < rounds; ++round) {
    // Children of the same member, which runs the second as a mate of itself.
    const int member = omp_get_thread_num();
#pragma omp task shared(done) firstprivate(member, round)
    {
      __atomic_store_n(&begun[member], round + 1, __ATOMIC_RELEASE);
      use_heap(2u * (unsigned)round + 1);
#pragma omp atomic
      done++;
    }
#pragma omp task shared(done) firstprivate(member, round)
    {
      wait_for_begin(member, round);
      use_heap(2u * (unsigned)round);
#pragma omp atomic
      done++;
    }
#pragma omp taskwait
  }
  CHECK(done == 2 * rounds * threads, "%d of %d tasks ran", done, 2 * rounds * threads);
  return passed();
}
