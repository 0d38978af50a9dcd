// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads /sys/devices/system/node/node*/meminfo.
#include "memory/node_stats.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/syscalls.h"

namespace bosk::memory {
namespace {

/// False: the file cannot be read. The text is cut at the buffer's end.
bool read_text(const char* path, char* text, size_t size) {
  const long fd =
      base::raw_syscall(SYS_openat, AT_FDCWD, base::address_of(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const long n =
      base::raw_syscall(SYS_read, fd, base::address_of(text), static_cast<long>(size - 1));
  base::raw_syscall(SYS_close, fd);
  if (n < 0) return false;
  text[n] = '\0';
  return true;
}

/// In bytes; kUnknownAmount: there is no such line.
uint64_t amount_of(const char* text, const char* name) {
  const char* at = strstr(text, name);
  return at != nullptr ? strtoull(at + strlen(name), nullptr, 10) << 10 : kUnknownAmount;
}

}  // namespace

uint64_t free_in_meminfo(const char* text) {
  const uint64_t unused = amount_of(text, " MemFree:");
  if (unused == kUnknownAmount) return kUnknownAmount;
  const uint64_t old_files = amount_of(text, " Inactive(file):");
  return unused + (old_files != kUnknownAmount ? old_files : 0);
}

NodeMemory memory_of_node(const MachineNodes& nodes, NodeIndex node) {
  const topology::NumaNode& known = nodes.machine().node_array[node];
  NodeMemory memory{known.bytes != topology::kUnknownBytes ? known.bytes : kUnknownAmount,
                    kUnknownAmount};
  if (!nodes.real()) return memory;
  char path[64];
  snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo", known.os_index);
  char text[2048];
  if (read_text(path, text, sizeof text)) memory.free = free_in_meminfo(text);
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
