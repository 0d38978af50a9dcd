// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pointers that nobody gave out are refused, and nothing is changed: far into what the heaps have only reserved, into
// guard pages, anywhere.
#include "bosk_check.h"

#include <bosk/memory.h>
#include <bosk/topology.h>
#include <sys/mman.h>

enum { PAGE = 4096, MOST = 1 << 20 };

static uint64_t used(void) {
  uint64_t sum = 0;
  for (int node = 0; node < bosk_topo_nodes(); ++node) {
    bosk_mem_stats_t stats = {.size = sizeof stats};
    OK(bosk_mem_node_stats(node, &stats));
    sum += stats.used;
  }
  return sum;
}

static void refuse(char* wild) {
  FAILS(bosk_free(wild), BOSK_ENOAREA);
  CHECK(bosk_malloc_size(wild) == 0, "%p is a block", (void*)wild);
  errno = 0;
  CHECK(bosk_realloc(wild, 5) == NULL && errno == EINVAL, "%p was reallocated", (void*)wild);
}

static void heaps(void) {
  for (size_t bytes = 1; bytes <= MOST; bytes *= 4) {
    char* block = bosk_malloc(bytes);
    CHECK(block != NULL, "no memory");
    memset(block, 0x5a, bytes);
    const uint64_t before = used();
    // Every address that differs by one bit, up to those that are not the program's.
    for (int bit = 0; bit < 64; ++bit)
      for (int more = 0; more <= 16; more += 8) {
        char* wild = (char*)((uintptr_t)block ^ (uintptr_t)1 << bit) + more;
        if (wild != block) refuse(wild);
      }
    for (size_t i = 0; i < bytes; ++i) CHECK(block[i] == 0x5a, "byte %zu has changed", i);
    CHECK(used() == before, "%lu bytes in use", (unsigned long)used());
    OK(bosk_free(block));
    refuse(block);
  }
}

/// Memory that is given back to the system is no block either.
static void trimmed(void) {
  enum { BLOCKS = 200, BYTES = 70000 };
  static char* block[BLOCKS];
  for (int i = 0; i < BLOCKS; ++i) {
    block[i] = bosk_malloc(BYTES);
    CHECK(block[i] != NULL, "no memory");
    memset(block[i], i, BYTES);
  }
  for (int i = 0; i < BLOCKS; ++i) OK(bosk_free(block[i]));
  OK(bosk_mem_trim());
  for (int i = 0; i < BLOCKS; ++i) refuse(block[i]);
  CHECK(used() == 0, "%lu bytes in use", (unsigned long)used());
}

static void guards(void) {
  char* guarded = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(guarded != MAP_FAILED, "mmap");
  OK(mprotect(guarded + PAGE, PAGE, PROT_READ));
  for (int at = 0; at <= PAGE + 16; at += 8) refuse(guarded + at);
  refuse(guarded + 2 * PAGE);
  munmap(guarded, 2 * PAGE);
  refuse(guarded + 2 * PAGE);
}

int main(int argc, char** argv) {
  const struct test tests[] = {{"heaps", heaps}, {"trimmed", trimmed}, {"guards", guards}};
  return RUN_TEST(argc, argv, tests);
}
