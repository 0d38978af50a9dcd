// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads /sys/devices/system/node/node*/meminfo.
#include "memory/node_stats.h"

#include <stdio.h>

#include "base/read_text.h"

namespace bosk::memory {
uint64_t free_in_meminfo(const char* text) {
  const uint64_t unused = base::amount_of(text, " MemFree:", kUnknownAmount);
  if (unused == kUnknownAmount) return kUnknownAmount;
  const uint64_t old_files = base::amount_of(text, " Inactive(file):", 0);
  return unused + old_files;
}

NodeMemory memory_of_node(const MachineNodes& nodes, NodeIndex node) {
  const topology::NumaNode& known = nodes.machine().node_array[node];
  NodeMemory memory{known.bytes != topology::kUnknownBytes ? known.bytes : kUnknownAmount,
                    kUnknownAmount};
  if (!nodes.real()) return memory;
  char path[64];
  snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo", known.os_index);
  char text[2048];
  if (base::read_text(path, text)) memory.free = free_in_meminfo(text);
  return memory;
}

NodeIndex least_loaded_node(const MachineNodes& nodes) {
  NodeIndex best = kNone;
  uint64_t most = 0;
  for (NodeIndex node = 0; node < nodes.count(); ++node) {
    if (!nodes.usable(node)) continue;
    const uint64_t free = memory_of_node(nodes, node).free;
    const uint64_t known = free != kUnknownAmount ? free : 0;
    if (best != kNone && known <= most) continue;
    best = node;
    most = known;
  }
  return best;
}

}  // namespace bosk::memory
