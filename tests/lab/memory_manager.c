// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the memory manager puts pages, as the kernel sees it:
//   memory_manager blocks NODES            blocks of every size and pages of every policy
//   memory_manager crew NODES              large migrations, asked for by all kinds of threads
//   memory_manager forbidden NODES FROM    in a cpuset of so many nodes, the kernel's FROM being the first of them: others are
//                                          refused and nothing is changed, and nothing lies elsewhere
#include "../programs/bosk_check.h"
#include "numa.h"

#include <bosk/memory.h>
#include <bosk/topology.h>
#include <omp.h>
#include <pthread.h>

enum { MOST_PAGES = 10000 };

static int there;

static void all_on(const void* begin, size_t bytes, int node, const char* what) {
  static int found[MOST_PAGES];
  char* first = (char*)((uintptr_t)begin & ~(uintptr_t)(kPage - 1));
  const size_t pages = ((char*)begin + bytes - first + kPage - 1) / kPage;
  CHECK(pages <= MOST_PAGES, "%zu pages", pages);
  nodes_of_pages(first, pages, found);
  for (size_t i = 0; i < pages; ++i)
    CHECK(found[i] == node, "%s: page %zu of %zu is on node %d, not %d", what, i, pages, found[i],
          node);
}

static void blocks(void) {
  for (int node = 0; node < there; ++node) {
    for (size_t bytes = 64; bytes <= 4 << 20; bytes *= 8) {
      char* block = bosk_malloc_on(bytes, node);
      CHECK(block != NULL, "no %zu bytes on node %d", bytes, node);
      memset(block, node, bytes);
      all_on(block, bytes, node, "malloc_on");
      block = bosk_realloc(block, bytes * 3);
      memset(block, node, bytes * 3);
      all_on(block, bytes * 3, node, "realloc");
      OK(bosk_free(block));
    }
    // Near the caller, which is on a CPU of the node.
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      unsigned at, on;
      if (sched_setaffinity(0, sizeof one, &one) != 0) break;
      where_am_i(&at, &on);
      if ((int)on != node) continue;
      // It looks where it is now and then.
      for (int i = 0; i < 200; ++i) OK(bosk_free(bosk_malloc(40)));
      for (size_t bytes = 64; bytes <= 4 << 20; bytes *= 8) {
        char* block = bosk_malloc(bytes);
        memset(block, node, bytes);
        all_on(block, bytes, node, "malloc");
        OK(bosk_free(block));
      }
      break;
    }
    void* block;
    bosk_mem_attr_t attr;
    OK(bosk_mem_attr_init(&attr));
    attr.policy = BOSK_MEM_ON_NODE;
    attr.node = (uint32_t)node;
    OK(bosk_mem_alloc(&block, 100 * kPage, &attr));
    memset(block, node, 100 * kPage);
    all_on(block, 100 * kPage, node, "on node");
    OK(bosk_free(block));
  }
  void* block;
  int found[100];
  bosk_mem_attr_t attr;
  OK(bosk_mem_attr_init(&attr));
  attr.policy = BOSK_MEM_INTERLEAVED;
  OK(bosk_mem_alloc(&block, 100 * kPage, &attr));
  memset(block, 1, 100 * kPage);
  nodes_of_pages(block, 100, found);
  for (int node = 0; node < there; ++node) {
    int pages = 0;
    for (int i = 0; i < 100; ++i) pages += found[i] == node;
    CHECK(pages >= 100 / there - 1 && pages <= 100 / there + 1, "%d pages on node %d", pages, node);
  }
  OK(bosk_free(block));
}

static void fill(uint64_t* words, size_t bytes) {
  for (size_t i = 0; i < bytes / 8; ++i) words[i] = i * 0x9e3779b97f4a7c15u;
}
static void check(const uint64_t* words, size_t bytes) {
  for (size_t i = 0; i < bytes / 8; ++i)
    CHECK(words[i] == i * 0x9e3779b97f4a7c15u, "word %zu has changed", i);
}

static uint64_t* area;
static const size_t kAreaBytes = (size_t)MOST_PAGES * kPage;

static void there_and_back(void) {
  for (int to = there - 1; to >= 0; to -= there - 1) {
    bosk_mem_moved_t moved = {.size = sizeof moved};
    OK(bosk_mem_migrate(area, to, &moved));
    CHECK(moved.moved + moved.already == MOST_PAGES, "%lu moved, %lu were there",
          (unsigned long)moved.moved, (unsigned long)moved.already);
    all_on(area, kAreaBytes, to, "migrated");
  }
  check(area, kAreaBytes);
}

static void* there_and_back_as(void* nothing) {
  there_and_back();
  return nothing;
}

static void crew(void) {
  area = (uint64_t*)fresh_memory(kAreaBytes);
  fill(area, kAreaBytes);
  OK(bosk_mem_register(area, kAreaBytes));
  there_and_back();  // main, before anything else
  pthread_t foreign;
  CHECK(pthread_create(&foreign, NULL, there_and_back_as, NULL) == 0, "no thread");
  pthread_join(foreign, NULL);
  bosk_thread_t thread;
  OK(bosk_thread_create(&thread, NULL, there_and_back_as, NULL));
  OK(bosk_thread_join(thread, NULL));
#pragma omp parallel
  {
#pragma omp single
    there_and_back();
  }
  // Several at once, over each other: nothing is lost, all is counted.
#pragma omp parallel num_threads(4)
  {
    bosk_mem_moved_t moved = {.size = sizeof moved};
    OK(bosk_mem_migrate(area, omp_get_thread_num() % there, &moved));
    CHECK(moved.moved + moved.already + moved.refused + moved.absent == MOST_PAGES,
          "pages are lost");
  }
  check(area, kAreaBytes);
  there_and_back();
  OK(bosk_mem_unregister(area));
}

static void forbidden(int from) {
  void* block;
  bosk_mem_attr_t attr;
  char* mine = fresh_memory(8 * kPage);
  memset(mine, 7, 8 * kPage);
  OK(bosk_mem_register(mine, 8 * kPage));
  int before[8], after[8];
  nodes_of_pages(mine, 8, before);
  for (int node = 0; node < there + 2; ++node) {
    OK(bosk_mem_attr_init(&attr));
    attr.policy = BOSK_MEM_ON_NODE;
    attr.node = (uint32_t)node;
    errno = 0;
    char* small = bosk_malloc_on(100, node);
    if (node < there) {
      memset(small, 1, 100);
      all_on(small, 100, from + node, "malloc_on");
      OK(bosk_free(small));
      OK(bosk_mem_alloc(&block, 3 * kPage, &attr));
      memset(block, 1, 3 * kPage);
      all_on(block, 3 * kPage, from + node, "on node");
      OK(bosk_free(block));
      continue;
    }
    CHECK(small == NULL && errno == EINVAL, "a block on node %d", node);
    FAILS(bosk_mem_alloc(&block, kPage, &attr), BOSK_ENODE);
    FAILS(bosk_mem_migrate(mine, node, NULL), BOSK_ENODE);
    const uint32_t both[] = {0, (uint32_t)node};
    FAILS(bosk_mem_distribute(mine, both, 2, kPage, NULL), BOSK_ENODE);
    attr.policy = BOSK_MEM_INTERLEAVED;
    attr.nodes = both;
    attr.n_nodes = 2;
    FAILS(bosk_mem_alloc(&block, kPage, &attr), BOSK_ENODE);
    nodes_of_pages(mine, 8, after);
    CHECK(memcmp(before, after, sizeof before) == 0, "refused, and moved all the same");
  }
  // Where no node is named, those that are allowed are meant.
  OK(bosk_mem_distribute(mine, NULL, 0, kPage, NULL));
  nodes_of_pages(mine, 8, after);
  for (int i = 0; i < 8; ++i)
    CHECK(after[i] == from + i % there, "page %d is on node %d", i, after[i]);
  for (uint32_t policy = BOSK_MEM_DEFAULT; policy <= BOSK_MEM_NEXT_TOUCH; ++policy) {
    if (policy == BOSK_MEM_ON_NODE) continue;
    OK(bosk_mem_attr_init(&attr));
    attr.policy = policy;
    OK(bosk_mem_alloc(&block, 8 * kPage, &attr));
    memset(block, 1, 8 * kPage);
    nodes_of_pages(block, 8, after);
    for (int i = 0; i < 8; ++i)
      CHECK(after[i] >= from && after[i] < from + there, "policy %u: node %d", policy, after[i]);
    OK(bosk_free(block));
  }
  for (int i = 0; i < 8 * kPage; ++i) CHECK(mine[i] == 7, "byte %d has changed", i);
}

int main(int argc, char** argv) {
  CHECK(argc >= 3, "usage: memory_manager blocks|crew|forbidden NODES [FROM]");
  there = atoi(argv[2]);
  CHECK(bosk_topo_nodes() == there, "%d nodes, not %d", bosk_topo_nodes(), there);
  if (!strcmp(argv[1], "blocks")) {
    blocks();
  } else if (!strcmp(argv[1], "crew")) {
    crew();
  } else {
    CHECK(argc == 4, "which nodes are allowed?");
    forbidden(atoi(argv[3]));
  }
  return passed();
}
