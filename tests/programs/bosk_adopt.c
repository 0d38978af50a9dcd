// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks of every kind can be registered, attached and unregistered alike: those of more than 1 MiB, which are areas from
// their beginning, too (bosk/memory.h).
#include "bosk_check.h"

#include <bosk/memory.h>
#include <bosk/topology.h>

enum { PAGE = 4096, HEAP_MOST = 1 << 20, BIG = 3 << 20 };

static bosk_mem_area_t area_at(const void* address) {
  bosk_mem_area_t area = {.size = sizeof area};
  OK(bosk_mem_area(address, &area));
  return area;
}

static uint64_t known_at(const void* address) {
  uint64_t on[64];
  const int nodes = bosk_mem_area_nodes(address, on, 64);
  CHECK(nodes == bosk_topo_nodes(), "%s", bosk_strerror(nodes));
  uint64_t sum = 0;
  for (int i = 0; i < nodes; ++i) sum += on[i];
  return sum;
}

/// The program's life with a block, whatever it came from.
static void live_with(char* block, size_t bytes) {
  CHECK(block != NULL, "no %zu bytes", bytes);
  memset(block, 'x', bytes);
  const int is_area = bosk_mem_update(block) == BOSK_OK;
  bosk_bubble_t bubble;
  OK(bosk_bubble_create(&bubble));
  for (int round = 0; round < 3; ++round) {
    OK(bosk_mem_register(block, bytes));
    const bosk_mem_area_t area = area_at(block + bytes / 2);
    CHECK(area.begin == block && area.bytes >= bytes && area.bytes < bytes + PAGE, "%p, %zu bytes",
          area.begin, area.bytes);
    CHECK(area.allocated == (uint32_t)is_area, "allocated: %u", area.allocated);
    // What it has been found to be, without bosk_mem_update(). Of invented machines nobody can tell.
    if (bosk_topo_nodes() == 1 || bosk_mem_locate(block) >= 0)
      CHECK(known_at(block) >= bytes, "%lu of %zu bytes", (unsigned long)known_at(block), bytes);
    FAILS(bosk_mem_register(block, bytes), BOSK_EOVERLAP);
    FAILS(bosk_mem_register(block, 1), BOSK_EOVERLAP);
    OK(bosk_mem_attach_bubble(block, bubble, BOSK_MEM_READS, 5));
    CHECK(area_at(block).attached == 1, "attached to %u", area_at(block).attached);
    const int marked = bosk_mem_next_touch(block, 0, 0);
    CHECK(marked == BOSK_OK || marked == BOSK_ENOTSUP, "%s", bosk_strerror(marked));
    OK(bosk_mem_unregister(block));
    FAILS(bosk_mem_unregister(block), BOSK_ENOAREA);
    bosk_stats_t stats = {.size = sizeof stats};
    OK(bosk_bubble_get_stats(bubble, &stats));
    CHECK(stats.footprint == 0, "still attached: %lu bytes", (unsigned long)stats.footprint);
    for (size_t i = 0; i < bytes; ++i) CHECK(block[i] == 'x', "byte %zu was lost", i);
    if (is_area) {
      CHECK(area_at(block).attached == 0, "attached to %u", area_at(block).attached);
      CHECK(bosk_mem_next_touch_query(block, 0, NULL) == 0, "marks are left");
    } else {
      FAILS(bosk_mem_update(block), BOSK_ENOAREA);
    }
  }
  OK(bosk_bubble_destroy(bubble));
  OK(bosk_free(block));
  FAILS(bosk_mem_update(block), BOSK_ENOAREA);
}

static void kinds(void) {
  static const size_t size[] = {1, 1000, PAGE, HEAP_MOST, HEAP_MOST + 1, BIG, BIG + 5};
  for (size_t i = 0; i < sizeof size / sizeof *size; ++i) {
    live_with(bosk_malloc(size[i]), size[i]);
    live_with(bosk_calloc(1, size[i]), size[i]);
    live_with(bosk_malloc_on(size[i], bosk_topo_nodes() - 1), size[i]);
    live_with(bosk_aligned_alloc(1 << 16, size[i]), size[i]);
    live_with(bosk_realloc(bosk_malloc(10), size[i]), size[i]);
    for (uint32_t policy = BOSK_MEM_DEFAULT; policy <= BOSK_MEM_NEXT_TOUCH; ++policy) {
      bosk_mem_attr_t attr;
      OK(bosk_mem_attr_init(&attr));
      attr.policy = policy;
      void* block;
      OK(bosk_mem_alloc(&block, size[i], &attr));
      live_with(block, size[i]);
    }
  }
}

/// A block of whole pages is adopted as a whole or not at all.
static void parts(void) {
  char* block = bosk_malloc(BIG);
  CHECK(block != NULL, "no memory");
  FAILS(bosk_mem_unregister(block), BOSK_ENOAREA);
  FAILS(bosk_mem_register(block, BIG - PAGE), BOSK_EOVERLAP);
  FAILS(bosk_mem_register(block, BIG + 1), BOSK_EOVERLAP);
  FAILS(bosk_mem_register(block + PAGE, BIG - PAGE), BOSK_EOVERLAP);
  FAILS(bosk_mem_register(block + BIG - 1, 1), BOSK_EOVERLAP);
  OK(bosk_mem_register(block, BIG - PAGE + 1));
  FAILS(bosk_mem_unregister(block + PAGE), BOSK_ENOAREA);
  // Parts of an adopted one are adopted.
  void* begins[3];
  OK(bosk_mem_split(block, 3, begins));
  for (int i = 2; i >= 0; --i) {
    FAILS(bosk_mem_register(begins[i], BIG / 3), BOSK_EOVERLAP);
    OK(bosk_mem_unregister(begins[i]));
    OK(bosk_mem_register(begins[i], BIG / 3));
  }
  OK(bosk_mem_unregister(begins[1]));
  // Freed, adopted or not.
  for (int i = 0; i < 3; ++i) OK(bosk_free(begins[i]));
  for (int i = 0; i < 3; ++i) FAILS(bosk_mem_unregister(begins[i]), BOSK_ENOAREA);

  // What has moved to another place is not adopted there.
  block = bosk_malloc(BIG);
  OK(bosk_mem_register(block, BIG));
  char* moved = bosk_realloc(block, 2 * BIG);
  CHECK(moved != NULL && moved != block, "not moved");
  FAILS(bosk_mem_unregister(moved), BOSK_ENOAREA);
  FAILS(bosk_mem_unregister(block), BOSK_ENOAREA);
  OK(bosk_free(moved));
}

/// Pages that nobody has touched will be where they were put: who registers them does not forget that.
static void untouched(void) {
  bosk_mem_attr_t attr;
  OK(bosk_mem_attr_init(&attr));
  attr.policy = BOSK_MEM_ON_NODE;
  attr.node = (uint32_t)(bosk_topo_nodes() - 1);
  void* block;
  OK(bosk_mem_alloc(&block, BIG, &attr));
  OK(bosk_mem_register(block, BIG));
  CHECK(known_at(block) == BIG && area_at(block).node == attr.node, "%lu bytes on node %u",
        (unsigned long)known_at(block), area_at(block).node);
  OK(bosk_mem_unregister(block));
  OK(bosk_free(block));
}

int main(int argc, char** argv) {
  const struct test tests[] = {{"kinds", kinds}, {"parts", parts}, {"untouched", untouched}};
  return RUN_TEST(argc, argv, tests);
}
