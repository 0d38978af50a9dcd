// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the kernel says of memory: is it mapped, and on which nodes do its pages lie?
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "memory/machine_nodes.h"

namespace bosk::memory {

size_t page_size();

/// Something is mapped at every byte. One system call that walks mappings, not pages.
bool is_mapped(uintptr_t begin, size_t bytes);

/// The node of the page at the address. kNone: nobody has touched it, nothing is mapped, or the
/// kernel's nodes are not the machine's.
NodeIndex node_of_page(const MachineNodes& nodes, uintptr_t address);

/// Pages that look_at_pages() asks for at most: more than that, and it takes a sample at even distances.
constexpr size_t kPagesLookedAt = 4096;

/// How many bytes of the range lie on each node, in bytes_on[0 … nodes.count()-1]. Pages that nobody has
/// touched count nowhere; on a machine of one node they count there, for that is where they will be. Takes
/// some 0.4 µs a page (facts of 2026: 366 ns), 1.5 ms at the most.
void look_at_pages(const MachineNodes& nodes, uintptr_t begin, size_t bytes, uint64_t* bytes_on);

/// The same by a sample of `looks` pages at most, other ones for another `phase`. On invented machines, which the kernel
/// cannot speak of, nothing is anywhere.
void sample_pages(const MachineNodes& nodes, uintptr_t begin, size_t bytes, size_t looks,
                  uint32_t phase, uint64_t* bytes_on);

}  // namespace bosk::memory
