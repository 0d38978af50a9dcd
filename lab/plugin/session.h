// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is counted: accesses (or, with the cache model, what reaches memory) by object, kind, CPU and the
// node of the memory. Knows nothing of QEMU.
//
// No locks: QEMU runs with thread=single, all CPUs of the guest take turns on one kernel thread.
#ifndef BOSK_LAB_SESSION_H
#define BOSK_LAB_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "address_map.h"
#include "cache_model.h"
#include "objects.h"

#ifdef __cplusplus
extern "C" {
#endif

enum locality_kind { kLoads, kStores, kWriteBacks, kKinds };

struct locality_cell {
  uint64_t times;
  uint64_t bytes;
};

// How the launcher's check of a node ended.
enum locality_check { kUnchecked, kRight, kWrong };

struct locality_session {
  struct locality_address_map map;
  struct locality_cell* cells;  // [object][cpu][kind][node], the last node being "none of them"
  unsigned object_space;        // objects that have cells
  struct locality_objects objects;
  bool with_objects;

  struct locality_caches* caches;  // NULL: every access counts
  uint8_t node_of_core[kMaxCpus];
  struct locality_cache_shape private_shape;
  struct locality_cache_shape shared_shape;
  unsigned line_bytes;
  unsigned line_shift;

  uint64_t io;  // accesses to devices
  enum locality_check check[kMaxNodes];
};

// Takes the map as it is. Without cache model: both shapes all zero. False: no memory, or impossible caches.
bool locality_session_init(struct locality_session* session, const struct locality_address_map* map,
                           bool with_objects, unsigned line_bytes,
                           struct locality_cache_shape private_shape,
                           struct locality_cache_shape shared_shape);
void locality_session_free(struct locality_session* session);

// All counts to zero, all caches empty, no objects. The checks stay.
void locality_session_reset(struct locality_session* session);

// The cells of one object and CPU: [kind][node].
static inline struct locality_cell* locality_cells(const struct locality_session* session,
                                                   unsigned object, unsigned cpu) {
  uint64_t width = session->map.nodes + 1;
  return session->cells + ((uint64_t)object * session->map.cpus + cpu) * kKinds * width;
}

// One access. `node` is that of `address` (physical), for nodes == kNoNode the last cell counts.
void locality_session_access(struct locality_session* session, unsigned cpu,
                             uint64_t virtual_address, uint64_t address, unsigned node,
                             unsigned bytes, bool store);

// Sums over the CPUs of a node; `memory_node` may be map.nodes for "none of them".
struct locality_cell locality_session_sum(const struct locality_session* session, unsigned object,
                                          enum locality_kind kind, unsigned cpu_node,
                                          unsigned memory_node);

#ifdef __cplusplus
}
#endif
#endif
