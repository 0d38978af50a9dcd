/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
   What it costs to reach memory and to move it, between the NUMA nodes of bosk/topology.h (numbered as there), in
   nanoseconds. docs/costs.md tells how figures are found, and `bosk topo --costs` shows them all.

   The figures are those that `bosk topo --costs` has measured on this machine and kept; where there are none, estimates
   by what firmware tells, or by the distances of the nodes. bosk_cost_source() tells which. Nothing is ever measured
   by a call of these. The first call reads a small file.

   All functions may be called by any thread at any time, but not in a signal handler. Results are not negative, unless
   they are codes of bosk/error.h: BOSK_EINVAL if there is no such node; BOSK_ENOENT if the cost is not known;
   BOSK_ENOMEM if there is no memory for the figures, or the machine has too many nodes (more than 256). */
#ifndef BOSK_MEMORY_COSTS_H
#define BOSK_MEMORY_COSTS_H

#include <stdint.h>

#include <bosk/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One thread on a PU of node `from` reads `bytes` bytes in a row, which lie on node `memory`, while nobody else uses
    memory. */
int64_t bosk_cost_for_read(int from, int memory, uint64_t bytes);
/** Likewise, it writes them. */
int64_t bosk_cost_for_write(int from, int memory, uint64_t bytes);
/** Moving `bytes` bytes, in whole pages of the usual size, from a node to another in one call. */
int64_t bosk_cost_for_migration(int from, int to, uint64_t bytes);

enum bosk_cost_source {
  BOSK_COST_MEASURED = 0, /* on this machine */
  BOSK_COST_ALIKE = 1, /* measured here, between two other nodes that are as far from each other */
  BOSK_COST_FIRMWARE = 2,  /* as firmware or a description of the machine tells */
  BOSK_COST_DISTANCES = 3, /* not measured: a usual figure, by the distance that firmware tells */
  BOSK_COST_ASSUMED = 4    /* not measured: a usual figure, by an assumed distance */
};

/** Where the costs of reads and writes from one node to another come from: the least certain of them. */
int bosk_cost_source(int from, int memory);

/** One thread's access to memory that is in no cache, in picoseconds, and its bandwidth in bytes per microsecond; `writes`:
    not 0 for writes. */
int64_t bosk_memory_latency(int from, int memory, int writes);
int64_t bosk_memory_bandwidth(int from, int memory, int writes);

#ifdef __cplusplus
}
#endif
#endif
