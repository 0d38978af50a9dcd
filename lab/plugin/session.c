// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counting.
#include "session.h"

#include <stdlib.h>
#include <string.h>

static void count(struct locality_session* session, unsigned object, unsigned cpu,
                  enum locality_kind kind, unsigned node, unsigned bytes) {
  if (node > session->map.nodes) node = session->map.nodes;
  struct locality_cell* cell =
      &locality_cells(session, object, cpu)[kind * (session->map.nodes + 1) + node];
  ++cell->times;
  cell->bytes += bytes;
}

// Whose line it was is no longer known by then: write-backs belong to no object and, among the CPUs of the
// node, to the first.
static void count_write_back(void* data, unsigned node, uint64_t line) {
  struct locality_session* session = data;
  unsigned cpu = 0;
  while (session->map.node_of_cpu[cpu] != node) ++cpu;
  unsigned home = locality_node_of(&session->map, line << session->line_shift);
  count(session, 0, cpu, kWriteBacks, home, session->line_bytes);
}

bool locality_session_init(struct locality_session* session, const struct locality_address_map* map,
                           bool with_objects, unsigned line_bytes,
                           struct locality_cache_shape private_shape,
                           struct locality_cache_shape shared_shape) {
  memset(session, 0, sizeof *session);
  session->map = *map;
  session->with_objects = with_objects;
  session->object_space = with_objects ? kMaxObjects : 1;
  locality_objects_init(&session->objects);
  session->cells = calloc((size_t)session->object_space * map->cpus * kKinds * (map->nodes + 1),
                          sizeof *session->cells);
  if (!session->cells) return false;
  if (private_shape.bytes == 0 && shared_shape.bytes == 0) return true;
  session->private_shape = private_shape;
  session->shared_shape = shared_shape;
  session->line_bytes = line_bytes;
  session->line_shift = line_bytes ? (unsigned)__builtin_ctz(line_bytes) : 0;
  unsigned cores = (map->cpus + map->threads - 1) / map->threads;
  for (unsigned core = 0; core < cores; ++core) {
    session->node_of_core[core] = map->node_of_cpu[core * map->threads];
  }
  session->caches =
      locality_caches_new(cores, session->node_of_core, session->map.nodes, line_bytes,
                          private_shape, shared_shape, count_write_back, session);
  return session->caches != NULL;
}

void locality_session_free(struct locality_session* session) {
  locality_caches_free(session->caches);
  locality_objects_free(&session->objects);
  free(session->cells);
  memset(session, 0, sizeof *session);
}

void locality_session_reset(struct locality_session* session) {
  memset(session->cells, 0,
         (size_t)session->object_space * session->map.cpus * kKinds * (session->map.nodes + 1) *
             sizeof *session->cells);
  if (session->caches) locality_caches_clear(session->caches);
  locality_objects_reset(&session->objects);
  session->io = 0;
}

void locality_session_access(struct locality_session* session, unsigned cpu,
                             uint64_t virtual_address, uint64_t address, unsigned node,
                             unsigned bytes, bool store) {
  unsigned object =
      session->with_objects ? locality_object_of(&session->objects, virtual_address) : 0;
  enum locality_kind kind = store ? kStores : kLoads;
  if (!session->caches) {
    count(session, object, cpu, kind, node, bytes);
    return;
  }
  // An access may lie in two lines. What lies beyond its page is left out: only the first page's physical
  // address is known.
  uint64_t last = address + bytes - 1;
  if ((last ^ address) >> 12) last = address | 0xfff;
  unsigned core = cpu / session->map.threads;
  for (uint64_t line = address >> session->line_shift; line <= last >> session->line_shift;
       ++line) {
    if (locality_caches_access(session->caches, core, line, store)) {
      count(session, object, cpu, kind, node, session->line_bytes);
    }
  }
}

struct locality_cell locality_session_sum(const struct locality_session* session, unsigned object,
                                          enum locality_kind kind, unsigned cpu_node,
                                          unsigned memory_node) {
  struct locality_cell sum = {0, 0};
  for (unsigned cpu = 0; cpu < session->map.cpus; ++cpu) {
    if (session->map.node_of_cpu[cpu] != cpu_node) continue;
    const struct locality_cell* cell =
        &locality_cells(session, object, cpu)[kind * (session->map.nodes + 1) + memory_node];
    sum.times += cell->times;
    sum.bytes += cell->bytes;
  }
  return sum;
}
