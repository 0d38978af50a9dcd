// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// On which nodes allocators put pages: allocators DEFAULT FAST LARGE, the node numbers (0,1,2) that belong to the
// default, the high bandwidth and the large capacity space of the machine. Each member of a team over the
// machine allocates for itself, and another one touches.
#include "numa.h"

#include <omp.h>
#include <stdint.h>

enum { kPages = 60 };

struct set {
  int count;
  int nodes[kMostNodes];
};

static struct set read_set(const char* text) {
  struct set set = {0};
  for (char* at = (char*)text; *at != '\0'; at += *at == ',') {
    CHECK(set.count < kMostNodes, "too many nodes: %s", text);
    set.nodes[set.count++] = (int)strtol(at, &at, 10);
    CHECK(*at == ',' || *at == '\0', "no list of nodes: %s", text);
  }
  return set;
}

static int has(const struct set* set, int node) {
  for (int i = 0; i < set->count; ++i)
    if (set->nodes[i] == node) return 1;
  return 0;
}

/// A block of whole pages, and where they are when the caller has touched them.
static char* get(omp_allocator_handle_t allocator, int* nodes) {
  char* block = omp_alloc(kPages * kPage, allocator);
  CHECK(block != NULL, "no block");
  CHECK((size_t)block % kPage == 0, "the block %p is not at a page", (void*)block);
  for (int i = 0; i < kPages; ++i) block[i * kPage] = 1;
  nodes_of_pages(block, kPages, nodes);
  return block;
}

static omp_allocator_handle_t make(omp_memspace_handle_t space, uintptr_t partition) {
  const omp_alloctrait_t traits[] = {{omp_atk_partition, partition}, {omp_atk_alignment, kPage}};
  const omp_allocator_handle_t made = omp_init_allocator(space, 2, traits);
  CHECK(made != omp_null_allocator, "no allocator");
  return made;
}

/// Nearest: on the node of whoever allocates, though others touch.
static void nearest(int nodes_with_cpus) {
  const omp_allocator_handle_t allocator = make(omp_default_mem_space, omp_atv_nearest);
  char* blocks[kMostNodes];
  unsigned homes[kMostNodes];
#pragma omp parallel num_threads(nodes_with_cpus)
  {
    const int me = omp_get_thread_num();
    const int other = (me + 1) % nodes_with_cpus;
    unsigned cpu;
    where_am_i(&cpu, &homes[me]);
    blocks[me] = omp_alloc(kPages * kPage, allocator);
    CHECK(blocks[me] != NULL, "no block");
#pragma omp barrier
    memset(blocks[other], 1, kPages * kPage);
#pragma omp barrier
    int nodes[kPages];
    nodes_of_pages(blocks[me], kPages, nodes);
    for (int i = 0; i < kPages; ++i)
      CHECK(nodes[i] == (int)homes[me], "nearest: page %d of node %u is on node %d", i, homes[me],
            nodes[i]);
    omp_free(blocks[me], allocator);
  }
  for (int i = 1; i < nodes_with_cpus; ++i)
    CHECK(homes[i] != homes[0], "members 0 and %d are both on node %u: bind them", i, homes[0]);
  omp_destroy_allocator(allocator);
}

/// Interleaved: page by page round the nodes. Blocked: a run of pages for each.
static void shared_out(const struct set* set, uintptr_t partition, const char* name) {
  const omp_allocator_handle_t allocator = make(omp_default_mem_space, partition);
  int nodes[kPages];
  char* block = get(allocator, nodes);
  int count[kMostNodes] = {0};
  int changes = 0;
  for (int i = 0; i < kPages; ++i) {
    CHECK(has(set, nodes[i]), "%s: page %d is on node %d", name, i, nodes[i]);
    count[nodes[i]]++;
    changes += i > 0 && nodes[i] != nodes[i - 1];
  }
  for (int i = 0; i < set->count; ++i)
    CHECK(count[set->nodes[i]] == kPages / set->count, "%s: %d of %d pages on node %d", name,
          count[set->nodes[i]], kPages, set->nodes[i]);
  const int expected = partition == omp_atv_interleaved ? kPages - 1 : set->count - 1;
  CHECK(changes == expected, "%s: the node changes %d times, not %d", name, changes, expected);
  omp_free(block, allocator);
  omp_destroy_allocator(allocator);
}

/// A space's pages are on its nodes, wherever the caller runs, with traits and with the predefined allocator.
static void space(omp_memspace_handle_t of, omp_allocator_handle_t predefined,
                  const struct set* set, const char* name, int members) {
  const omp_allocator_handle_t own = make(of, omp_atv_environment);
#pragma omp parallel num_threads(members)
  {
    int nodes[kPages];
    char* block = get(own, nodes);
    for (int i = 0; i < kPages; ++i)
      CHECK(has(set, nodes[i]), "%s: member %d's page %d is on node %d", name, omp_get_thread_num(),
            i, nodes[i]);
    omp_free(block, own);
    block = omp_aligned_alloc(kPage, kPages * kPage, predefined);
    CHECK(block != NULL, "%s: no block", name);
    memset(block, 1, kPages * kPage);
    nodes_of_pages(block, kPages, nodes);
    for (int i = 0; i < kPages; ++i)
      CHECK(has(set, nodes[i]), "%s, predefined: page %d is on node %d", name, i, nodes[i]);
    omp_free(block, predefined);
  }
  omp_destroy_allocator(own);
}

int main(int argc, char** argv) {
  CHECK(argc == 4, "usage: allocators DEFAULT FAST LARGE");
  const struct set plain = read_set(argv[1]);
  const struct set fast = read_set(argv[2]);
  const struct set large = read_set(argv[3]);
  CHECK(kPages % plain.count == 0, "%d pages on %d nodes", kPages, plain.count);
  omp_set_dynamic(0);
  nearest(plain.count);
  shared_out(&plain, omp_atv_interleaved, "interleaved");
  shared_out(&plain, omp_atv_blocked, "blocked");
  space(omp_high_bw_mem_space, omp_high_bw_mem_alloc, &fast, "high bandwidth", plain.count);
  space(omp_large_cap_mem_space, omp_large_cap_mem_alloc, &large, "large capacity", plain.count);
  return passed();
}
