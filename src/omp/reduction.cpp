// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Task reductions: memory, registration, remapping.
#include "omp/reduction.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "base/message.h"
#include "omp/taskgroup.h"
#include "omp/workshare_chain.h"

namespace bosk::omp {
namespace {

uintptr_t* next_array(const uintptr_t* array) {
  return reinterpret_cast<uintptr_t*>(array[kReductionNext]);
}

uintptr_t* entry_of(uintptr_t* array, size_t i) {
  return array + kReductionEntries + i * kReductionEntryWords;
}

size_t round_up(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Bytes and alignment that a list of arrays needs, not yet registered (kReductionMemory still holds
/// the alignments).
struct Extent {
  size_t bytes = 0;
  size_t alignment = base::kCacheLine;
};

Extent extent_of(const uintptr_t* arrays, uint32_t size) {
  Extent extent;
  for (const uintptr_t* array = arrays; array != nullptr; array = next_array(array)) {
    const size_t alignment = std::max<size_t>(array[kReductionMemory], 1);
    extent.alignment = std::max(extent.alignment, alignment);
    extent.bytes = round_up(extent.bytes, alignment) + array[kReductionPartBytes] * size;
  }
  return extent;
}

/// Puts the entries' numbers, in the order of the original addresses, in the words that are ours:
/// finding an original is then a binary search without memory of its own.
void sort_originals(uintptr_t* array) {
  const size_t count = array[kReductionCount];
  // Insertion sort by hand: the places to sort lie three words apart, and lists are short.
  for (size_t i = 0; i < count; ++i) {
    const uintptr_t original = entry_of(array, i)[0];
    size_t at = i;
    while (at > 0 && entry_of(array, entry_of(array, at - 1)[2])[0] > original) {
      entry_of(array, at)[2] = entry_of(array, at - 1)[2];
      --at;
    }
    entry_of(array, at)[2] = i;
  }
}

/// Gives each array of the list its place in `memory`.
void place(uintptr_t* arrays, uint32_t size, char* memory) {
  size_t at = 0;
  for (uintptr_t* array = arrays; array != nullptr; array = next_array(array)) {
    const size_t alignment = std::max<size_t>(array[kReductionMemory], 1);
    at = round_up(at, alignment);
    array[kReductionMemory] = reinterpret_cast<uintptr_t>(memory + at);
    at += array[kReductionPartBytes] * size;
    array[kReductionEnd] = reinterpret_cast<uintptr_t>(memory + at);
    array[kReductionOwned] = 0;
    sort_originals(array);
  }
}

/// The entry of `array` with this original address, or null.
uintptr_t* entry_with_original(uintptr_t* array, uintptr_t address) {
  size_t low = 0;
  size_t high = array[kReductionCount];
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    uintptr_t* entry = entry_of(array, entry_of(array, middle)[2]);
    if (entry[0] == address) return entry;
    if (entry[0] < address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return nullptr;
}

/// The entry with this offset, or null. The compiler sorts entries by offset.
uintptr_t* entry_with_offset(uintptr_t* array, uintptr_t offset) {
  size_t low = 0;
  size_t high = array[kReductionCount];
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    uintptr_t* entry = entry_of(array, middle);
    if (entry[1] == offset) return entry;
    if (entry[1] < offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return nullptr;
}

struct Remapped {
  uintptr_t copy = 0;
  uintptr_t original = 0;  ///< 0: the address is inside a copy, not its begin
};

bool remap_in(uintptr_t* array, uint32_t index, uintptr_t address, Remapped* out) {
  const uintptr_t mine = array[kReductionMemory] + index * array[kReductionPartBytes];
  if (const uintptr_t* entry = entry_with_original(array, address)) {
    *out = {mine + entry[1], address};
    return true;
  }
  if (address < array[kReductionMemory] || address >= array[kReductionEnd]) return false;
  const uintptr_t offset = (address - array[kReductionMemory]) % array[kReductionPartBytes];
  const uintptr_t* entry = entry_with_offset(array, offset);
  *out = {mine + offset, entry != nullptr ? entry[0] : 0};
  return true;
}

/// Searches the task's taskgroups from the inside out. The arrays of a group are linked on to those
/// of the groups around it, so the first group that has any leads to all.
bool remap_one(const Task* task, uint32_t index, uintptr_t address, Remapped* out) {
  for (const TaskGroup* group = task->group; group != nullptr; group = group->outer) {
    for (uintptr_t* array = group->reductions; array != nullptr; array = next_array(array)) {
      if (remap_in(array, index, address, out)) return true;
    }
  }
  return false;
}

/// What the members of a parallel region with reductions are started with.
struct ReducingRegion {
  RegionFunction fn;
  void* data;
  uintptr_t* arrays;
  uint32_t size;
};

void reducing_member(void* argument) {
  // On the opener's stack, which stays until the region has ended.
  const auto* region = static_cast<const ReducingRegion*>(argument);
  taskgroup_push(current_task())->reductions = region->arrays;
  region->fn(region->data);
  taskgroup_end();
}

void prepare_reductions(Team* team, void* argument) {
  auto* region = static_cast<ReducingRegion*>(argument);
  region->size = team->size;
  reduction_allocate(region->arrays, team->size);
}

}  // namespace

void reduction_allocate(uintptr_t* arrays, uint32_t size) {
  const Extent extent = extent_of(arrays, size);
  void* memory = nullptr;
  if (posix_memalign(&memory, extent.alignment, std::max(extent.bytes, base::kCacheLine)) != 0) {
    base::die(1, "out of memory: cannot allocate %zu bytes for the private copies of a reduction",
              extent.bytes);
  }
  memset(memory, 0, extent.bytes);
  place(arrays, size, static_cast<char*>(memory));
  arrays[kReductionOwned] = reinterpret_cast<uintptr_t>(memory);
}

void reduction_attach(Task* task, uintptr_t* arrays) {
  TaskGroup* group = task->group;
  if (group == nullptr) {
    base::die(70, "a task reduction was registered outside of any taskgroup");
  }
  uintptr_t* around = nullptr;
  for (const TaskGroup* at = group; around == nullptr && at != nullptr; at = at->outer) {
    around = at->reductions;
  }
  uintptr_t* last = arrays;
  while (next_array(last) != nullptr) last = next_array(last);
  last[kReductionNext] = reinterpret_cast<uintptr_t>(around);
  group->reductions = arrays;
}

void reduction_register(Task* task, uintptr_t* arrays) {
  reduction_allocate(arrays, task->team->size);
  reduction_attach(task, arrays);
}

void reduction_unregister(uintptr_t* arrays) {
  free(reinterpret_cast<void*>(arrays[kReductionOwned]));
  arrays[kReductionOwned] = 0;
}

void reduction_remap(const Task* task, uint32_t index, size_t count, size_t originals,
                     void** addresses) {
  for (size_t i = 0; i < count; ++i) {
    Remapped found;
    if (!remap_one(task, index, reinterpret_cast<uintptr_t>(addresses[i]), &found) ||
        (i < originals && found.original == 0)) {
      base::gomp_fatal(
          "couldn't find matching task_reduction or reduction with task modifier for %p",
          addresses[i]);
    }
    if (i < originals) addresses[count + i] = reinterpret_cast<void*>(found.original);
    addresses[i] = reinterpret_cast<void*>(found.copy);
  }
}

void make_extras(WorkShare& share, ConstructExtras extras) {
  Extent reductions;
  if (extras.reductions != nullptr) reductions = extent_of(extras.reductions, share.size);
  const size_t copies = round_up(reductions.bytes, base::kCacheLine);
  const size_t plain = extras.memory != nullptr ? reinterpret_cast<size_t>(*extras.memory) : 0;
  void* at = reserve(share.shared, copies + plain, reductions.alignment);
  memset(at, 0, copies + plain);
  share.shared_plain = static_cast<char*>(at) + copies;
}

void use_extras(WorkShare& share, ConstructExtras extras) {
  if (extras.memory != nullptr) *extras.memory = share.shared_plain;
  if (extras.reductions == nullptr) return;
  // Every member's array describes the same variables, so all get the same places. The memory stays
  // with the object: a member can only be done with the construct when it moves on, so it is reused
  // when nobody needs it, in cancelled regions too.
  place(extras.reductions, share.size, static_cast<char*>(share.shared.at));
  Task* task = current_task();
  taskgroup_push(task)->is_workshare = true;
  reduction_attach(task, extras.reductions);
}

void scope_start(ImplicitTask* member, uintptr_t* arrays) {
  const ConstructExtras extras{arrays, nullptr};
  WorkShare* share = enter_workshare(member, [&](WorkShare& fresh) {
    make_extras(fresh, extras);
    // Members meet further constructs inside of a scope, and must not give its memory away by moving
    // on: each also has to leave it before their count comes to the team's size.
    fresh.moved_on.store(0u - fresh.size, std::memory_order_relaxed);
  });
  member->loop_state[kMore] = kMoreNothing;
  member->loop_state[kHolding] = kHoldingNothing;
  use_extras(*share, extras);
  current_task()->group->scope = share;
}

void workshare_reduction_end(bool cancelled) {
  const TaskGroup* group = current_task()->group;
  WorkShare* scope = group != nullptr ? group->scope : nullptr;
  taskgroup_end();
  if (scope != nullptr) move_past(current_member()->team, scope);
  if (!cancelled) barrier();
}

uint32_t parallel_reductions(RegionFunction fn, void* data, uint32_t num_threads, uint32_t flags) {
  ReducingRegion region{fn, data, *static_cast<uintptr_t**>(data), 1};
  parallel(reducing_member, &region, num_threads, flags & 7, prepare_reductions, &region);
  return region.size;
}

}  // namespace bosk::omp
