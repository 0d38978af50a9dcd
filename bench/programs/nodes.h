// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NUMA nodes as the kernel tells them, by its numbers: their CPUs, how far they are, and memory that is put on them.
#ifndef NODES_H
#define NODES_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

enum { kMostNumaNodes = 64, kPageBytes = 4096 };

static inline int read_node_file(int node, const char* what, char* text, int bytes) {
  char path[80];
  snprintf(path, sizeof path, "/sys/devices/system/node/node%d/%s", node, what);
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  const int read = fgets(text, bytes, file) != NULL;
  fclose(file);
  return read;
}

/// All CPUs of a node, whoever may use them; none where there is no such node.
static inline void cpus_of_node(int node, cpu_set_t* cpus) {
  char text[1000];
  CPU_ZERO(cpus);
  const char* at = read_node_file(node, "cpulist", text, sizeof text) ? text : NULL;
  while (at != NULL && *at >= '0' && *at <= '9') {
    char* next;
    const long first = strtol(at, &next, 10);
    const long last = *next == '-' ? strtol(next + 1, &next, 10) : first;
    for (long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++) CPU_SET((int)cpu, cpus);
    at = *next == ',' ? next + 1 : NULL;
  }
}

typedef struct {
  int node;
  cpu_set_t cpus;  // that this process may use
} NodeAtHand;

/// The nodes that have memory and CPUs that this process may use. Before anybody is bound.
static inline int nodes_at_hand(NodeAtHand nodes[kMostNumaNodes]) {
  cpu_set_t allowed;
  int count = 0;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) bench_fail("sched_getaffinity failed");
  unsigned long memory[kMostNumaNodes * 16 / sizeof(long)] = {0};
  if (syscall(SYS_get_mempolicy, NULL, memory, 8 * sizeof memory, NULL, MPOL_F_MEMS_ALLOWED) != 0)
    memory[0] = 1;  // a kernel without NUMA
  for (int node = 0; node < kMostNumaNodes; node++) {
    if (!(memory[0] >> node & 1)) continue;
    nodes[count].node = node;
    cpus_of_node(node, &nodes[count].cpus);
    CPU_AND(&nodes[count].cpus, &nodes[count].cpus, &allowed);
    if (CPU_COUNT(&nodes[count].cpus) != 0) count++;
  }
  if (count != 0) return count;
  nodes[0] = (NodeAtHand){0, allowed};
  return 1;
}

/// As firmware tells it: 10 is a node's own memory.
static inline int node_distance(int from, int to) {
  char text[1000];
  if (!read_node_file(from, "distance", text, sizeof text)) return from == to ? 10 : 20;
  char* at = text;
  long distance = 10;
  for (int node = 0; node <= to; node++) distance = strtol(at, &at, 10);
  return (int)distance;
}

static inline void go_to_cpus(const cpu_set_t* cpus) {
  if (sched_setaffinity(0, sizeof *cpus, cpus) != 0) bench_fail("sched_setaffinity failed");
}

/// Small pages that nobody has touched yet.
static inline char* map_small_pages(size_t bytes) {
  void* made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) bench_fail("out of memory");
  madvise(made, bytes, MADV_NOHUGEPAGE);
  return made;
}

/// What is touched later goes to these nodes: `mode` is MPOL_BIND or MPOL_INTERLEAVE. A kernel without NUMA has one.
static inline void put_on_nodes(void* memory, size_t bytes, int mode, unsigned long nodes) {
  if (syscall(SYS_mbind, memory, bytes, mode, &nodes, 8 * sizeof nodes + 1, 0) != 0 && nodes != 1)
    bench_fail("mbind failed");
}

/// -1: the kernel does not say.
static inline int node_of_page(const void* address) {
  void* page = (void*)((uintptr_t)address & ~(uintptr_t)(kPageBytes - 1));
  int status = -1;
  if (syscall(SYS_move_pages, 0, 1UL, &page, NULL, &status, 0) != 0) return -1;
  return status;
}

#endif
