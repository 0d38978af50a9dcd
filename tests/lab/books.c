// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the books say of memory that came or went without them, and nobody calls bosk_mem_update(): it is what the kernel says.
//   books touched|followed|interleaved
#include "../programs/bosk_check.h"
#include "numa.h"

#include <bosk/memory.h>
#include <bosk/topology.h>
#include <linux/mempolicy.h>
#include <stdatomic.h>

enum { NODES = 4, PAGES = 64, BYTES = PAGES * kPage };

static _Atomic int step;

static void wait_for_step(int number) {
  while (atomic_load(&step) < number) usleep(1000);
}

static void where_they_are(char* memory, uint64_t* bytes) {
  int found[PAGES];
  nodes_of_pages(memory, PAGES, found);
  memset(bytes, 0, NODES * sizeof *bytes);
  for (int page = 0; page < PAGES; ++page)
    if (found[page] >= 0) bytes[found[page]] += kPage;
}

static int books_agree(char* memory, bosk_thread_t thread) {
  uint64_t kernel[NODES], area[NODES], footprint[NODES];
  where_they_are(memory, kernel);
  CHECK(bosk_mem_area_nodes(memory, area, NODES) == NODES, "area");
  CHECK(bosk_mem_thread_footprint(thread, footprint, NODES) == NODES, "footprint");
  return memcmp(kernel, area, sizeof kernel) == 0 && memcmp(kernel, footprint, sizeof kernel) == 0;
}

static void say(const char* when, char* memory, bosk_thread_t thread) {
  uint64_t kernel[NODES], footprint[NODES];
  where_they_are(memory, kernel);
  bosk_mem_thread_footprint(thread, footprint, NODES);
  printf("%s: on nodes", when);
  for (int i = 0; i < NODES; ++i)
    printf(" %d:%lu/%lu", i, (unsigned long)footprint[i] / kPage, (unsigned long)kernel[i] / kPage);
  printf(" pages (books/kernel)\n");
  fflush(stdout);
}

/// What the kernel says, after some time; the program's deadline ends this.
static void until_books_agree(const char* when, char* memory, bosk_thread_t thread) {
  say(when, memory, thread);
  while (!books_agree(memory, thread)) usleep(10000);
  say("agreed", memory, thread);
}

static void* touch_at_step_one(void* memory) {
  wait_for_step(1);
  for (int page = 0; page < PAGES; ++page) ((char*)memory)[page * kPage] += 1;
  atomic_store(&step, 2);
  wait_for_step(3);
  return NULL;
}

static bosk_thread_t start(char* memory) {
  bosk_thread_t thread;
  bosk_bubble_t bubble;
  bosk_thread_attr_t attr;
  OK(bosk_bubble_create(&bubble));
  OK(bosk_thread_attr_init(&attr));
  attr.bubble = bubble;
  OK(bosk_thread_create(&thread, &attr, touch_at_step_one, memory));
  OK(bosk_mem_attach_thread(memory, thread, BOSK_MEM_READS_AND_WRITES, 10));
  OK(bosk_bubble_wake(bubble, NULL));
  return thread;
}

static void end(bosk_thread_t thread) {
  atomic_store(&step, 3);
  OK(bosk_thread_join(thread, NULL));
}

/// Marked, and touched by somebody. At once: whoever asks is told what touches have brought.
static void touched(void) {
  char* memory = fresh_small_pages(BYTES);
  for (int page = 0; page < PAGES; ++page) memory[page * kPage] = 1;
  OK(bosk_mem_register(memory, BYTES));
  const bosk_thread_t thread = start(memory);
  CHECK(books_agree(memory, thread), "before it is marked");
  OK(bosk_mem_next_touch(memory, 0, 0));
  uint64_t footprint[NODES], sum = 0;
  CHECK(bosk_mem_thread_footprint(thread, footprint, NODES) == NODES, "footprint");
  for (int i = 0; i < NODES; ++i) sum += footprint[i];
  CHECK(sum == 0, "marked, and %lu bytes are a reason to be somewhere", (unsigned long)sum);
  atomic_store(&step, 1);
  wait_for_step(2);
  say("touched", memory, thread);
  CHECK(books_agree(memory, thread), "after all of it was touched");
  bosk_stats_t stats = {.size = sizeof stats};
  OK(bosk_thread_get_stats(thread, &stats));
  CHECK(stats.footprint == BYTES, "the statistics say %lu bytes", (unsigned long)stats.footprint);
  end(thread);
}

static void move_all(char* memory, int node) {
  void* pages[PAGES];
  int nodes[PAGES], found[PAGES];
  for (int page = 0; page < PAGES; ++page) {
    pages[page] = memory + page * kPage;
    nodes[page] = node;
  }
  CHECK(syscall(SYS_move_pages, 0, (long)PAGES, pages, nodes, found, (long)MPOL_MF_MOVE) >= 0,
        "move_pages: %s", strerror(errno));
}

/// Touched after it was registered, then moved by a system call of the program's own.
static void followed(void) {
  char* memory = fresh_small_pages(BYTES);
  OK(bosk_mem_register(memory, BYTES));
  const bosk_thread_t thread = start(memory);
  atomic_store(&step, 1);
  wait_for_step(2);
  until_books_agree("touched", memory, thread);
  for (int node = 0; node < NODES; ++node) {
    move_all(memory, node);
    until_books_agree("moved", memory, thread);
  }
  end(thread);
}

/// By bosk, and by the kernel at the program's wish.
static void interleaved(void) {
  bosk_mem_attr_t attr;
  OK(bosk_mem_attr_init(&attr));
  attr.policy = BOSK_MEM_INTERLEAVED;
  void* block;
  OK(bosk_mem_alloc(&block, BYTES, &attr));
  bosk_thread_t thread = start(block);
  uint64_t before[NODES], bytes[NODES];
  CHECK(bosk_mem_area_nodes(block, before, NODES) == NODES, "area");
  for (int i = 0; i < NODES; ++i)
    CHECK(before[i] == BYTES / NODES, "%lu bytes will be on node %d", (unsigned long)before[i], i);
  atomic_store(&step, 1);
  wait_for_step(2);
  where_they_are(block, bytes);
  CHECK(memcmp(bytes, before, sizeof bytes) == 0, "they are not where they were to be");
  CHECK(books_agree(block, thread), "by bosk");
  end(thread);

  atomic_store(&step, 0);
  char* memory = fresh_small_pages(BYTES);
  const unsigned long all = (1 << NODES) - 1;
  CHECK(
      syscall(SYS_mbind, memory, (long)BYTES, (long)MPOL_INTERLEAVE, &all, 8 * sizeof all, 0L) == 0,
      "mbind: %s", strerror(errno));
  OK(bosk_mem_register(memory, BYTES));
  thread = start(memory);
  atomic_store(&step, 1);
  wait_for_step(2);
  until_books_agree("interleaved", memory, thread);
  end(thread);
}

int main(int argc, char** argv) {
  const struct test tests[] = {
      {"touched", touched}, {"followed", followed}, {"interleaved", interleaved}};
  CHECK(bosk_topo_nodes() == NODES, "%d nodes", bosk_topo_nodes());
  return RUN_TEST(argc, argv, tests);
}
