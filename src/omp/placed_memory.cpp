// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mmap, mbind and mlock, straight to the kernel: no libnuma.
#include "omp/placed_memory.h"

#include <linux/mempolicy.h>
#include <sys/auxv.h>

#include "base/pages.h"
#include "base/syscalls.h"
#include "omp/process_nodes.h"

// Linux 5.15 and 5.17.
#ifndef MPOL_PREFERRED_MANY
#define MPOL_PREFERRED_MANY 5
#endif
#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif

namespace bosk::omp {
namespace {

/// The kernel reads one bit less than it is told.
constexpr long kMaskBits = NodeSet::kMost + 1;

long bind_pages(char* at, size_t bytes, int mode, const NodeSet& nodes) {
  return base::raw_syscall(SYS_mbind, base::address_of(at), static_cast<long>(bytes), mode,
                           base::address_of(nodes.words), kMaskBits, 0);
}

bool bind_range(char* at, size_t bytes, const RangePolicy& range) {
  long failed = bind_pages(at, bytes, range.mode, range.nodes);
  if (failed == -EINVAL && range.mode == MPOL_PREFERRED_MANY) {
    NodeSet first;
    first.add(range.nodes.next(0));
    failed = bind_pages(at, bytes, MPOL_PREFERRED, first);
  }
  if (failed != 0) return false;
  // Without it (before Linux 5.17) the pages are on nodes of the space all the same.
  if (range.mode == MPOL_BIND && range.home != topology::kNone) {
    base::raw_syscall(SYS_set_mempolicy_home_node, base::address_of(at), static_cast<long>(bytes),
                      static_cast<long>(range.home), 0);
  }
  return true;
}

bool place(char* at, size_t bytes, const MemoryPlan& plan, bool pinned) {
  const size_t page = page_size();
  const size_t pages = bytes / page;
  const uint32_t n = n_ranges(plan, pages);
  // A policy that leaves no other nodes does not fail where they are full: it gets the process killed.
  if (plan.strict && n != 0 && !nodes_have_room(plan.nodes, bytes)) return false;
  for (uint32_t i = 0; i < n; i++) {
    const RangePolicy range = range_of(plan, pages, i);
    if (!bind_range(at + range.first_page * page, range.pages * page, range)) return false;
  }
  // Locking touches the pages: by now they know where to go.
  return !pinned ||
         base::raw_syscall(SYS_mlock, base::address_of(at), static_cast<long>(bytes)) == 0;
}

}  // namespace

size_t page_size() { return getauxval(AT_PAGESZ); }

void* map_placed(size_t bytes, size_t alignment, size_t offset, const MemoryPlan& plan,
                 bool pinned) {
  // What is mapped in front of and behind the aligned part is given back at once.
  const size_t page = page_size();
  const size_t slack = alignment > page ? alignment : 0;
  size_t mapped;
  if (__builtin_add_overflow(bytes, slack, &mapped)) return nullptr;
  char* base = static_cast<char*>(base::map_pages(mapped));
  if (base == nullptr) return nullptr;
  char* at = base;
  if (slack != 0) {
    const uintptr_t wanted =
        (reinterpret_cast<uintptr_t>(base) + offset + alignment - 1) & ~(alignment - 1);
    at = reinterpret_cast<char*>((wanted - offset) & ~(page - 1));
    const auto before = static_cast<size_t>(at - base);
    if (before != 0) base::unmap_pages(base, before);
    if (before < slack) base::unmap_pages(at + bytes, slack - before);
  }
  if (place(at, bytes, plan, pinned)) return at;
  base::unmap_pages(at, bytes);
  return nullptr;
}

}  // namespace bosk::omp
