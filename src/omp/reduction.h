// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Task reductions: the array that describes them, and the memory of the private copies.
//
// An array of words that the compiled code makes (GCC's layout): what is reduced, and where in a
// member's part of the memory its copy lies. Registering gives the memory, zeroed, one part per
// member of the team; remapping finds the executing member's copy of a variable.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "omp/loop.h"

namespace bosk::omp {

/// Words of a reduction array.
enum ReductionWord : uint8_t {
  kReductionCount,      ///< number of entries
  kReductionPartBytes,  ///< size of one member's part
  kReductionMemory,     ///< in: alignment; out: address of member 0's part
  kReductionAllocator,
  kReductionNext,     ///< next array of the same clause list, then those of the taskgroups around
  kReductionOwned,    ///< ours: allocation to free at unregister; 0: none
  kReductionEnd,      ///< ours: end of the last member's part
  kReductionEntries,  ///< entries follow: original address, offset in the part, ours
  kReductionEntryWords = 3,
};

/// Registers a list of arrays for `size` members, with memory of its own, without attaching it to a
/// taskgroup.
void reduction_allocate(uintptr_t* arrays, uint32_t size);

/// Attaches registered arrays to the task's innermost taskgroup.
void reduction_attach(Task* task, uintptr_t* arrays);

/// Registers `arrays` for the team and attaches them to the task's innermost taskgroup.
void reduction_register(Task* task, uintptr_t* arrays);

/// Frees the memory of reduction_register() or reduction_allocate().
void reduction_unregister(uintptr_t* arrays);

/// Replaces each of `addresses[0 .. count-1]`, an original variable or some member's copy of it, by
/// member `index`'s copy; addresses[count + i] becomes the original, for i < originals.
void reduction_remap(const Task* task, uint32_t index, size_t count, size_t originals,
                     void** addresses);

/// `scope` with reductions, and the like: a construct with extras and nothing to hand out.
void scope_start(ImplicitTask* member, uintptr_t* arrays);

/// The end of a worksharing construct with reductions: its taskgroup, then a barrier unless cancelled.
void workshare_reduction_end(bool cancelled);

/// As omp::parallel() for `parallel reduction(task, …)`: `*data` begins with a pointer to the array.
/// Returns the size of the team; the caller combines the copies and unregisters.
uint32_t parallel_reductions(RegionFunction fn, void* data, uint32_t num_threads, uint32_t flags);

// ---- for the worksharing constructs

/// The memory that `extras` ask for, in the object, for all members. By the builder.
void make_extras(WorkShare& share, ConstructExtras extras);

/// Fills in the calling member's own `extras` from the object, and opens its taskgroup if it reduces.
void use_extras(WorkShare& share, ConstructExtras extras);

}  // namespace bosk::omp
