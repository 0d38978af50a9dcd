// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that chase pointers or stream through memory, bound to PUs, all at the same time. Private to cost_probe*.cpp.
#pragma once

#include <stddef.h>

#include "memory/costs.h"

namespace bosk::memory {

enum class ProbeWork : uint8_t {
  kChase,   ///< one access after the other, to lines by chance: latency
  kStream,  ///< in order, as fast as it goes: bandwidth
};

/// One thread of a measurement.
struct ProbeThread {
  int cpu;          ///< Linux's number
  int kernel_node;  ///< of the memory
  ProbeWork work;
  Access way;
  double result = 0;  ///< ns per access, or bytes per ns; 0: could not be measured
};

/// Runs them all at once for `seconds`, each on `bytes` of memory of its own. False: no thread or no memory.
bool run_probe(ProbeThread* threads, uint32_t count, size_t bytes, double seconds);

/// Memory on a node, touched; `huge`: with huge pages where there are any. Null: there is not as much.
void* map_on_node(size_t bytes, int kernel_node, bool huge);
void unmap_from_node(void* memory, size_t bytes);

double probe_now();  ///< seconds

}  // namespace bosk::memory
