// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Target constructs on the host.
#include "omp/target_region.h"

#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "omp/environment.h"
#include "omp/explicit_task.h"
#include "omp/places.h"
#include "omp/region.h"
#include "omp/taskgroup.h"
#include "omp/thread_place.h"

namespace bosk::omp {
namespace {

// ---- what the region's function gets

constexpr unsigned kFirstprivate = 12;

size_t round_up(size_t value, size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

/// An absent optional argument of Fortran has no address.
bool is_copied(const TargetRegion& region, size_t i) {
  return (region.kinds[i] & 0xff) == kFirstprivate && region.addresses[i] != nullptr;
}

size_t alignment_of(const TargetRegion& region, size_t i) {
  return size_t{1} << (region.kinds[i] >> 8);
}

/// A region and its addresses, with what is firstprivate behind them.
struct PackedRegion {
  RegionFunction function;
  uint32_t thread_limit;

  void** addresses() { return reinterpret_cast<void**>(this + 1); }
};

struct PackedSize {
  size_t bytes;
  size_t alignment;
  bool copies;  ///< something is firstprivate
};

PackedSize packed_size(const TargetRegion& region) {
  PackedSize size{sizeof(PackedRegion) + region.count * sizeof(void*), alignof(PackedRegion),
                  false};
  for (size_t i = 0; i < region.count; ++i) {
    if (!is_copied(region, i)) continue;
    const size_t alignment = alignment_of(region, i);
    if (alignment > size.alignment) size.alignment = alignment;
    size.bytes = round_up(size.bytes, alignment) + region.sizes[i];
    size.copies = true;
  }
  return size;
}

void pack(void* to, void* from) {
  const auto& region = *static_cast<const TargetRegion*>(from);
  auto* packed = static_cast<PackedRegion*>(to);
  packed->function = region.function;
  packed->thread_limit = region.thread_limit;
  size_t at = sizeof(PackedRegion) + region.count * sizeof(void*);
  for (size_t i = 0; i < region.count; ++i) {
    void*& address = packed->addresses()[i];
    address = region.addresses[i];
    if (!is_copied(region, i)) continue;
    at = round_up(at, alignment_of(region, i));
    address = static_cast<char*>(to) + at;
    memcpy(address, region.addresses[i], region.sizes[i]);
    at += region.sizes[i];
  }
}

void run_packed(void* data) {
  auto* packed = static_cast<PackedRegion*>(data);
  run_as_initial_thread(packed->function, packed->addresses(), packed->thread_limit);
}

// ---- the thread that runs it

Team* take_team(sched::Thread* me) {
  sched::Worker* w = sched::enter(me);
  auto* team = static_cast<Team*>(w->free_bubbles);
  if (team != nullptr) w->free_bubbles = team->next_free;
  sched::leave(me);
  return team != nullptr ? team : make_team();
}

/// The thread stays where it is, and may lay out teams over all places.
void take_all_places(Team* team, const ImplicitTask* outer) {
  team->partition_count = 0;
  const ProcessIcvs& process = process_icvs();
  if (process.initial.bind == Bind::kFalse || process.places->count() == 0) return;
  team->bind = Bind::kPrimary;
  team->partition_first = 0;
  team->partition_count = process.places->count();
  team->opener_place = place_of(outer).place;
}

void nothing(void*) {}

}  // namespace

void run_as_initial_thread(RegionFunction fn, void* data, uint32_t thread_limit) {
  sched::Thread* me = current_thread();
  Task* const outer_task = me->task;
  ImplicitTask* const outer_member = me->member;
  sched::Bubble* const outer_bubble = me->bubble;
  Team* const outer = outer_task->team;
  Team* team = take_team(me);
  team->function = fn;
  team->data = data;
  team->opener_task = outer_task;
  team->opener_index = outer_member->index;
  // In the nest of bubbles it is a region like others; to the program it is the outermost.
  team->parent.store(outer, std::memory_order_relaxed);
  team->depth.store(outer->depth.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  team->opener = me;
  team->home.store(me->worker, std::memory_order_relaxed);
  team->level = 0;
  team->active_level = 0;
  team->inside_region = outer->active_level != 0 || root_team(outer)->inside_region;
  team->size = 1;
  team->flat = false;
  team->native_count = 1;
  team->at_end.store(0, std::memory_order_relaxed);
  team->icvs = process_icvs().initial;
  if (thread_limit != 0) team->icvs.thread_limit = thread_limit;
  team->contention.reset();
  take_all_places(team, outer_member);
  set_recycled_state(team);
  ImplicitTask member;
  set_up_member(me, team, &member, 0, outer_task);
  fn(data);
  end_member(me, &member);
  if (BOSK_UNLIKELY(team->workshares.used)) workshare_reset(team);
  sched::Worker* w = sched::enter(me);
  me->task = outer_task;
  me->member = outer_member;
  // release: a pause that sees it sees that the region has ended.
  std::atomic_ref(me->bubble).store(outer_bubble, std::memory_order_release);
  team->next_free = w->free_bubbles;
  w->free_bubbles = team;
  sched::leave(me);
}

void run_target(const TargetRegion& region, void** depend) {
  const PackedSize size = packed_size(region);
  if (!size.copies) {
    if (depend != nullptr) wait_for_dependences(depend);
    run_as_initial_thread(region.function, region.addresses, region.thread_limit);
    return;
  }
  // What is firstprivate is copied before anything is waited for: other tasks may change it meanwhile.
  constexpr size_t kSmall = 512;
  alignas(base::kCacheLine) char small[kSmall];
  void* block = small;
  if (size.bytes > kSmall || size.alignment > base::kCacheLine) {
    if (posix_memalign(&block, size.alignment, size.bytes) != 0)
      base::gomp_fatal("Out of memory allocating %zu bytes", size.bytes);
  }
  pack(block, const_cast<TargetRegion*>(&region));
  if (depend != nullptr) wait_for_dependences(depend);
  run_packed(block);
  if (block != small) free(block);
}

void defer_target(const TargetRegion& region, void** depend) {
  const PackedSize size = packed_size(region);
  const uint32_t flags = kTaskPlainCopy | (depend != nullptr ? kTaskDepend : 0u);
  create_task({run_packed, const_cast<TargetRegion*>(&region), pack, size.bytes, size.alignment,
               true, flags, depend, 0, nullptr, nullptr});
}

void keep_dependences(void** depend, bool nowait) {
  if (depend == nullptr) return;
  if (nowait)
    create_task({nothing, nullptr, nullptr, 0, 1, true, kTaskDepend, depend, 0, nullptr, nullptr});
  else if (!tasks_cancelled(current_task()))
    wait_for_dependences(depend);
}

void defer_with_dependences(void (*fn)(void*), void* data, void (*copy)(void*, void*), size_t bytes,
                            int count, void* dependences) {
  // As compiled code lists them: a marker, how many there are of each kind, then the objects.
  constexpr size_t kHead = 5;
  constexpr size_t kObjectBytes = 16;
  constexpr size_t kFew = 16;
  void* few[kHead + kFew];
  const auto n = static_cast<size_t>(count);
  void** list = few;
  if (n > kFew) {
    list = static_cast<void**>(malloc((kHead + n) * sizeof(void*)));
    if (list == nullptr) base::gomp_fatal("Out of memory for task dependences");
  }
  memset(list, 0, kHead * sizeof(void*));
  list[1] = reinterpret_cast<void*>(n);
  for (size_t i = 0; i < n; ++i)
    list[kHead + i] = static_cast<char*>(dependences) + i * kObjectBytes;
  create_task({fn, data, copy, bytes, alignof(void*), true, kTaskPlainCopy | kTaskDepend, list, 0,
               nullptr, nullptr});
  if (list != few) free(list);
}

}  // namespace bosk::omp
