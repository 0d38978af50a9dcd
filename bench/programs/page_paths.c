// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What pages come to another node at, by their number and by the way they go (Goglin 2009, figure 3): from the first node
// that the process may use to the second one. With one node only what needs no other is measured: copies, and what
// marking and touching takes where the data may stay.
//
//   page_paths PATH PAGES…     "pages-N" in MB/s, each a median
//        memcpy           into memory that is there, by a thread of the second node
//        move-pages       one call for all; there and back
//        migrate-pages    likewise; it takes the rest of the process along, as the call is made
//        copy-on-write    a child on the second node writes a byte to each page that it has from its parent
//        next-touch       bosk's: marked, and a byte of each written to by a thread of the second node. Also
//                         "mark-N" in ns
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/wait.h>

#include <bosk/memory.h>

#include "nodes.h"

// So that it can be started where the library is not bosk, and say so.
#pragma weak bosk_mem_register
#pragma weak bosk_mem_unregister
#pragma weak bosk_mem_next_touch
#pragma weak bosk_mem_next_touch_query

static NodeAtHand nodes[kMostNumaNodes];
static const NodeAtHand *from, *to;

typedef struct {
  size_t pages;
  char* memory;
  double mark_ns;
} Buffer;

static size_t bytes_of(const Buffer* b) { return b->pages * kPageBytes; }

static void touch_all(char* memory, size_t pages) {
  for (size_t i = 0; i < pages; i++) *(volatile char*)(memory + i * kPageBytes) = (char)(i + 1);
}

/// By first touch: a policy of its own would keep next-touch away, and copies of it.
static char* map_on(const NodeAtHand* node, size_t pages) {
  go_to_cpus(&node->cpus);
  char* memory = map_small_pages(pages * kPageBytes);
  memset(memory, 1, pages * kPageBytes);
  return memory;
}

static void must_be_on(const NodeAtHand* node, const Buffer* b) {
  if (from == to) return;
  for (size_t i = 0; i < b->pages; i += (b->pages + 15) / 16)
    if (node_of_page(b->memory + i * kPageBytes) != node->node)
      bench_fail("page_paths: pages did not come");
}

// --- each way: ns of once --------------------------------------------------------------------------

static double by_memcpy(Buffer* b) {
  char* other = map_on(to, b->pages);
  const double start = now_ns();
  memcpy(other, b->memory, bytes_of(b));
  const double took = now_ns() - start;
  if (other[bytes_of(b) - 1] != 1) bench_fail("page_paths: not copied");
  munmap(other, bytes_of(b));
  return took;
}

static double one_move(const Buffer* b, const NodeAtHand* where) {
  void** address = malloc(b->pages * sizeof *address);
  int* wanted = malloc(b->pages * sizeof *wanted);
  int* status = malloc(b->pages * sizeof *status);
  if (address == NULL || wanted == NULL || status == NULL) bench_fail("page_paths: out of memory");
  for (size_t i = 0; i < b->pages; i++) {
    address[i] = b->memory + i * kPageBytes;
    wanted[i] = where->node;
  }
  const double start = now_ns();
  const long left = syscall(SYS_move_pages, 0, b->pages, address, wanted, status, MPOL_MF_MOVE);
  const double took = now_ns() - start;
  if (left != 0) bench_fail("page_paths: move_pages failed");
  must_be_on(where, b);
  free(address);
  free(wanted);
  free(status);
  return took;
}

static double by_move_pages(Buffer* b) { return (one_move(b, to) + one_move(b, from)) / 2; }

static double one_migration(const Buffer* b, const NodeAtHand* out_of, const NodeAtHand* into) {
  const unsigned long old = 1UL << out_of->node, new = 1UL << into->node;
  const double start = now_ns();
  const long left = syscall(SYS_migrate_pages, 0, 8 * sizeof old + 1, &old, &new);
  const double took = now_ns() - start;
  if (left < 0) bench_fail("page_paths: migrate_pages failed");
  must_be_on(into, b);
  return took;
}

static double by_migrate_pages(Buffer* b) {
  return (one_migration(b, from, to) + one_migration(b, to, from)) / 2;
}

static double by_copy_on_write(Buffer* b) {
  double* took = mmap(NULL, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (took == MAP_FAILED) bench_fail("page_paths: out of memory");
  *took = 0;
  const pid_t child = fork();
  if (child < 0) bench_fail("page_paths: fork failed");
  if (child == 0) {
    go_to_cpus(&to->cpus);
    const double start = now_ns();
    touch_all(b->memory, b->pages);
    *took = now_ns() - start;
    must_be_on(to, b);
    _exit(0);
  }
  int status;
  if (waitpid(child, &status, 0) != child || status != 0) bench_fail("page_paths: no copies");
  const double ns = *took;
  munmap(took, kPageBytes);
  return ns;
}

static double by_next_touch(Buffer* b) {
  if (bosk_mem_register(b->memory, bytes_of(b)) != 0) bench_fail("page_paths: bosk_mem_register");
  go_to_cpus(&to->cpus);
  const double start = now_ns();
  if (bosk_mem_next_touch(b->memory, bytes_of(b), 0) < 0) bench_fail("page_paths: cannot mark");
  b->mark_ns = now_ns() - start;
  touch_all(b->memory, b->pages);
  const double took = now_ns() - start;
  const int64_t marked = bosk_mem_next_touch_query(b->memory, bytes_of(b), NULL);
  if (marked != 0) bench_fail("page_paths: a touch that was none");
  must_be_on(to, b);
  if (bosk_mem_unregister(b->memory) != 0) bench_fail("page_paths: bosk_mem_unregister");
  return took;
}

// --- sizes -----------------------------------------------------------------------------------------

static const struct {
  const char* name;
  double (*once)(Buffer*);
  int other_node;  // needs one
} kPaths[] = {
    {"memcpy", by_memcpy, 0},
    {"move-pages", by_move_pages, 1},
    {"migrate-pages", by_migrate_pages, 1},
    {"copy-on-write", by_copy_on_write, 0},
    {"next-touch", by_next_touch, 0},
};

static void measure(double (*once)(Buffer*), size_t pages) {
  enum { kMost = 2000 };
  static double took[kMost], marks[kMost];
  int samples = 0;
  const double end = now_ns() + kBenchSamples * bench_sample_ns();
  while (samples < kBenchSamples || (samples < kMost && now_ns() < end)) {
    Buffer b = {pages, map_on(from, pages), 0};
    took[samples] = once(&b);
    marks[samples++] = b.mark_ns;
    munmap(b.memory, bytes_of(&b));
  }
  char name[40];
  snprintf(name, sizeof name, "pages-%zu", pages);
  bench_print(name, (double)pages * kPageBytes / bench_median(took, samples) * 1e3, "MB/s");
  snprintf(name, sizeof name, "mark-%zu", pages);
  if (once == by_next_touch) bench_print(name, bench_median(marks, samples), "ns");
  fflush(stdout);
}

int main(int argc, char** argv) {
  if (argc < 3) bench_fail("usage: page_paths PATH PAGES…");
  const int n_nodes = nodes_at_hand(nodes);
  from = &nodes[0];
  to = &nodes[n_nodes > 1 ? 1 : 0];
  for (size_t p = 0; p < sizeof kPaths / sizeof *kPaths; p++) {
    if (strcmp(kPaths[p].name, argv[1]) != 0) continue;
    if (kPaths[p].other_node && n_nodes < 2)
      bench_fail("page_paths: this machine has one NUMA node");
    if (kPaths[p].once == by_next_touch && bosk_mem_register == NULL)
      bench_fail("page_paths: the libgomp.so.1 that is loaded is not bosk");
    for (int i = 2; i < argc; i++) measure(kPaths[p].once, (size_t)bench_int(argc, argv, i));
    return 0;
  }
  bench_fail("page_paths: no such path");
}
