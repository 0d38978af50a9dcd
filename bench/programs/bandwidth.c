// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What all threads together read of memory that no cache holds, by where it is and how many nodes are at work
// (Broquedis 2009, table 1).
//
//   bandwidth local|neighbours one|all THREADS   MB/s. THREADS of each node that is at work, or of the first one only, each
//                                                on a CPU and memory of its own: on its node, or page by page on its node
//                                                and those next to it
//
// BANDWIDTH_KIB: of each thread, default 64 MiB.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <omp.h>

#include "nodes.h"

static NodeAtHand nodes[kMostNumaNodes];
static int n_nodes, per_node;
static size_t words;  // of each thread

/// The node's own and those at the least distance: all others where all are alike.
static unsigned long with_neighbours(int node) {
  int nearest = 0;
  for (int i = 0; i < n_nodes; i++) {
    const int distance = node_distance(node, nodes[i].node);
    if (nodes[i].node != node && (nearest == 0 || distance < nearest)) nearest = distance;
  }
  unsigned long mask = 1UL << node;
  for (int i = 0; i < n_nodes; i++)
    if (nodes[i].node != node && node_distance(node, nodes[i].node) == nearest)
      mask |= 1UL << nodes[i].node;
  return mask;
}

static void go_to_cpu(const NodeAtHand* node, int which) {
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &node->cpus) || which-- != 0) continue;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    go_to_cpus(&only);
    return;
  }
  bench_fail("bandwidth: more threads than the node has CPUs");
}

static uint64_t sum_of(const uint64_t* memory) {
  uint64_t sum[4] = {0, 0, 0, 0};
  for (size_t i = 0; i < words; i += 4)
    for (int k = 0; k < 4; k++) sum[k] += memory[i + (size_t)k];
  return sum[0] + sum[1] + sum[2] + sum[3];
}

/// MB/s of all threads: the median of the passes.
static double measure(int neighbours, int at_work) {
  enum { kMostPasses = 200 };
  double rates[kMostPasses];
  int passes = 0, wrong = 0, going = 1;
  const size_t bytes = words * sizeof(uint64_t);
  const int threads = at_work * per_node;
  const double end = now_ns() + bench_budget_ns();
#pragma omp parallel num_threads(threads) reduction(+ : wrong)
  {
    const int me = omp_get_thread_num();
    const NodeAtHand* node = &nodes[me / per_node];
    wrong += omp_get_num_threads() != threads;
    go_to_cpu(node, me % per_node);
    uint64_t* memory = (uint64_t*)(void*)map_small_pages(bytes);
    if (neighbours)
      put_on_nodes(memory, bytes, MPOL_INTERLEAVE, with_neighbours(node->node));
    else
      put_on_nodes(memory, bytes, MPOL_BIND, 1UL << node->node);
    for (size_t i = 0; i < words; i++) memory[i] = 1;
    double began = 0;
    while (going) {
#pragma omp barrier
      if (me == 0) began = now_ns();
      wrong += sum_of(memory) != words;
#pragma omp barrier
      if (me == 0) {
        rates[passes++] = (double)bytes * threads / (now_ns() - began) * 1e3;
        going = passes < kBenchSamples || (passes < kMostPasses && now_ns() < end);
      }
#pragma omp barrier
    }
    munmap(memory, bytes);
  }
  if (wrong != 0) bench_fail("bandwidth: a wrong sum, or a smaller team than asked for");
  return bench_median(rates, passes);
}

int main(int argc, char** argv) {
  if (argc < 4) bench_fail("usage: bandwidth local|neighbours one|all THREADS");
  const int neighbours = strcmp(argv[1], "neighbours") == 0;
  if (!neighbours && strcmp(argv[1], "local") != 0) bench_fail("bandwidth: no such place");
  n_nodes = nodes_at_hand(nodes);
  if (neighbours && n_nodes < 2) bench_fail("bandwidth: this machine has one NUMA node");
  const int at_work = strcmp(argv[2], "all") == 0 ? n_nodes : 1;
  per_node = bench_int(argc, argv, 3);
  const char* text = getenv("BANDWIDTH_KIB");
  words =
      (size_t)(text != NULL && atol(text) > 0 ? atol(text) : 64L << 10) * 1024 / sizeof(uint64_t);
  omp_set_dynamic(0);
  bench_print("bandwidth", measure(neighbours, at_work), "MB/s");
  return 0;
}
