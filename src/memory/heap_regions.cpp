// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reserves addresses; they cost nothing until blocks are in them.
#include "memory/heap_regions.h"

#include <sys/mman.h>

#include "base/syscalls.h"
#include "memory/place_pages.h"

namespace bosk::memory {
namespace {

constexpr unsigned kLeastShift = 26;  // mimalloc's arenas are made of 32 MiB each
constexpr unsigned kMostShift = 40;

/// As much as the largest node has: no heap can need more.
unsigned shift_for(const MachineNodes& nodes) {
  uint64_t most = 0;
  for (const topology::NumaNode& node : nodes.machine().nodes()) {
    const uint64_t bytes = node.bytes != topology::kUnknownBytes ? node.bytes : uint64_t{1} << 36;
    if (bytes > most) most = bytes;
  }
  unsigned shift = kLeastShift;
  while (shift < kMostShift && uint64_t{1} << shift < most) ++shift;
  return shift;
}

/// Not a page of it can be touched, and none is charged. 0: refused.
uintptr_t reserve(size_t bytes, size_t alignment) {
  const long at = base::raw_syscall(SYS_mmap, 0, static_cast<long>(bytes + alignment), PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at < 0) return 0;
  const auto begin = static_cast<uintptr_t>(at);
  const uintptr_t aligned = (begin + alignment - 1) & ~(alignment - 1);
  if (aligned != begin) base::raw_syscall(SYS_munmap, at, static_cast<long>(aligned - begin));
  if (aligned - begin != alignment)
    base::raw_syscall(SYS_munmap, static_cast<long>(aligned + bytes),
                      static_cast<long>(alignment - (aligned - begin)));
  return aligned;
}

}  // namespace

bool reserve_heaps(const MachineNodes& nodes, const HeapLibrary& library, HeapRegions* regions,
                   int* arenas) {
  // Where address space is limited (ulimit -v), less will do.
  for (unsigned shift = shift_for(nodes); shift >= kLeastShift; --shift) {
    const size_t bytes = static_cast<size_t>(nodes.count()) << shift;
    const uintptr_t base = reserve(bytes, size_t{1} << kLeastShift);
    if (base == 0) continue;
    const long headers = base::raw_syscall(
        SYS_mmap, 0, static_cast<long>(bytes >> HeapRegions::kPageShift), PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (headers < 0) {
      base::raw_syscall(SYS_munmap, static_cast<long>(base), static_cast<long>(bytes));
      continue;
    }
    for (NodeIndex node = 0; node < nodes.count(); ++node) {
      arenas[node] = -1;
      if (node >= kMostHeaps || !nodes.usable(node)) continue;
      void* at = reinterpret_cast<void*>(base + (uintptr_t{node} << shift));
      prefer_node(nodes, at, size_t{1} << shift, node);
      // Not committed: it makes pages usable as it needs them, and gives them back. -1: it need not know
      // about nodes. Exclusive: for our heaps only.
      if (!library.manage_os_memory_ex(at, size_t{1} << shift, false, false, true, -1, true,
                                       &arenas[node]))
        arenas[node] = -1;
    }
    *regions = {base, bytes, shift, reinterpret_cast<std::atomic<uint8_t>*>(headers)};
    return true;
  }
  return false;
}

}  // namespace bosk::memory
