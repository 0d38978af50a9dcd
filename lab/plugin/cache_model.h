// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A model of the caches between cores and memory: which accesses would reach memory.
//
// Every core has a private cache, every node a cache that its cores share; both are set-associative with
// least-recently-used replacement and hold whole lines, found by physical address. Rules:
//
// 1. An access looks in its core's private cache, then in its node's shared cache, then goes to memory: a
//    *fill*. What it fetches is put into both (write-allocate: stores fetch like loads).
// 2. A store makes the core the only one to hold the line: copies in the private caches of all other cores
//    and in the shared caches of all other nodes are dropped. Its own node's shared cache keeps its copy.
// 3. A stored line is dirty in the private cache. Evicted from there it goes, dirty, to the node's shared
//    cache; evicted dirty from the shared cache it goes to memory: a *write-back*, by that node. A dirty
//    line that rule 2 drops elsewhere is written back too, by the node that had it.
// 4. A load that finds the line nowhere in its own node is a fill, even if another node's cache holds it:
//    on a NUMA machine such a request goes to the home node as well. The other's dirty copy is cleaned (a
//    write-back by the node that had it); it keeps the line.
// 5. The same inside a node: a load of a line that is dirty in another core's private cache, and in the
//    shared cache in an older state or not at all, moves the newer state into the shared cache (dirty there)
//    and finds it there.
// 6. The shared cache is neither inclusive nor exclusive: an eviction there leaves private copies alone.
//
// Not in the model: prefetching, code fetches, page-table walks, and time.
//
// Single-threaded: QEMU must run with thread=single.
#ifndef BOSK_LAB_CACHE_MODEL_H
#define BOSK_LAB_CACHE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct locality_cache_shape {
  uint64_t bytes;
  unsigned ways;
};

struct locality_caches;

// Called for each line that goes back to memory, from the node that had it.
typedef void (*locality_write_back_t)(void* data, unsigned node, uint64_t line);

// node_of_cpu must live as long as the model. NULL if there is no memory or a shape is impossible: a cache
// holds whole sets of `ways` lines each; a line is a power of two, 16 to 4096 bytes.
struct locality_caches* locality_caches_new(unsigned cpus, const uint8_t* node_of_cpu,
                                            unsigned nodes, unsigned line_bytes,
                                            struct locality_cache_shape private_shape,
                                            struct locality_cache_shape shared_shape,
                                            locality_write_back_t write_back, void* data);
void locality_caches_free(struct locality_caches* caches);

// All caches empty; dirty lines are forgotten.
void locality_caches_clear(struct locality_caches* caches);

// One access to one line (address / line size). True if it is a fill from memory.
bool locality_caches_access(struct locality_caches* caches, unsigned cpu, uint64_t line,
                            bool store);

#ifdef __cplusplus
}
#endif
#endif
