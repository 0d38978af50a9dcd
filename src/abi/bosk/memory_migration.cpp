// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/memory.h: moving areas, at once and by next-touch.
#include <bosk/memory.h>
#include <stddef.h>
#include <string.h>

#include <mutex>

#include "abi/bosk/answer.h"
#include "abi/gomp/export.h"
#include "memory/area_migration.h"
#include "memory/page_nodes.h"
#include "omp/follow_memory.h"
#include "threads/attached.h"
#include "threads/migration_crew.h"

namespace memory = bosk::memory;
namespace threads = bosk::threads;

namespace {

uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

bool is_sound(const bosk_mem_moved_t* moved) {
  constexpr size_t kFirstVersion = offsetof(bosk_mem_moved_t, unsplit);
  constexpr size_t kMostOfAnyVersion = 4096;
  return moved == nullptr || (moved->size >= kFirstVersion && moved->size <= kMostOfAnyVersion);
}

void answer(const memory::Moved& sum, bosk_mem_moved_t* moved) {
  if (moved == nullptr) return;
  const size_t size = moved->size;
  const bosk_mem_moved_t all = {
      size,          sum.moved,  sum.already, sum.absent, sum.refused + sum.unsplit,
      sum.no_memory, sum.unsplit};
  memset(static_cast<void*>(moved), 0, size);
  memcpy(moved, &all, size < sizeof all ? size : sizeof all);
}

int code_of(int next_touch_error) {
  switch (next_touch_error) {
    case memory::kNextTouchOk:
      return BOSK_OK;
    case memory::kNextTouchBadRange:
      return BOSK_EINVAL;
    case memory::kNextTouchNotMapped:
      return BOSK_EUNMAPPED;
    case memory::kNextTouchInUse:
      return BOSK_EBUSY;
    case memory::kNextTouchNoMemory:
      return BOSK_ENOMEM;
    default:
      return BOSK_ENOTSUP;
  }
}

bool usable(const memory::AreaTable& areas, int node) {
  return node >= 0 && areas.nodes().usable(static_cast<memory::NodeIndex>(node));
}

/// The table, for who is about to move pages, perhaps many.
memory::AreaTable* areas_to_move() {
  memory::set_migration_crew(threads::migration_crew());
  return threads::memory_areas();
}

struct Move {
  memory::AreaTable* areas;
  memory::NodeIndex node;
  memory::Moved sum;

  static void each(void* self, const memory::AreaInfo& area) {
    auto* move = static_cast<Move*>(self);
    memory::migrate_area(*move->areas, area, move->node, &move->sum);
  }
};

template <typename Handle>
int migrate_all_of(Handle entity, int node, bosk_mem_moved_t* moved) {
  if (!is_sound(moved)) return BOSK_EINVAL;
  memory::AreaTable* areas = areas_to_move();
  if (areas == nullptr) return BOSK_ENOMEM;
  if (!usable(*areas, node)) return BOSK_ENODE;
  Move move{areas, static_cast<memory::NodeIndex>(node), {}};
  const int error = threads::each_area_of(entity, Move::each, &move);
  if (error == BOSK_OK) threads::memory_has_changed();
  if (error == BOSK_OK) answer(move.sum, moved);
  return error;
}

/// The area of the range, and the range that is meant.
int find_range(const void* begin, size_t* bytes, memory::AreaTable** areas, memory::AreaInfo* area,
               uintptr_t* from) {
  *areas = threads::memory_areas();
  if (*areas == nullptr) return BOSK_ENOMEM;
  if (begin == nullptr) return BOSK_EINVAL;
  if (!(*areas)->look_up(number(begin), area)) return BOSK_ENOAREA;
  *from = number(begin);
  if (*bytes == 0) {
    *from = area->begin;
    *bytes = area->bytes();
  }
  return *bytes <= area->end - *from ? BOSK_OK : BOSK_EINVAL;
}

constexpr int kAllFlags = BOSK_MEM_ON_WRITE | BOSK_MEM_CALLS_WORK;

/// A code of NextTouchError.
int mark(memory::AreaTable& areas, const memory::AreaInfo& area, uintptr_t from, size_t bytes,
         int flags) {
  memory::NextTouchOptions options;
  options.on_write = (flags & BOSK_MEM_ON_WRITE) != 0;
  options.calls_must_work = (flags & BOSK_MEM_CALLS_WORK) != 0;
  bosk::omp::expect_marks();
  return memory::mark_area(areas, area, from, bytes, options);
}

struct Marking {
  memory::AreaTable* areas;
  int flags;

  static void each(void* self, const memory::AreaInfo& area) {
    const auto* marking = static_cast<Marking*>(self);
    mark(*marking->areas, area, area.begin, area.bytes(), marking->flags);
  }
};

template <typename Handle>
int mark_all_of(Handle entity, int flags) {
  if ((flags & ~kAllFlags) != 0) return BOSK_EINVAL;
  memory::AreaTable* areas = threads::memory_areas();
  if (areas == nullptr) return BOSK_ENOMEM;
  Marking marking{areas, flags};
  return threads::each_area_of(entity, Marking::each, &marking);
}

}  // namespace

static int mem_migrate(const void* address, int node, bosk_mem_moved_t* moved) {
  if (!is_sound(moved)) return BOSK_EINVAL;
  memory::AreaTable* areas = areas_to_move();
  if (areas == nullptr) return BOSK_ENOMEM;
  memory::AreaInfo area;
  if (!areas->look_up(number(address), &area)) return BOSK_ENOAREA;
  if (!usable(*areas, node)) return BOSK_ENODE;
  memory::Moved sum;
  memory::migrate_area(*areas, area, static_cast<memory::NodeIndex>(node), &sum);
  if (area.attachments != 0) threads::memory_has_changed();
  answer(sum, moved);
  return BOSK_OK;
}
BOSK_EXPORT int bosk_mem_migrate(const void* address, int node, bosk_mem_moved_t* moved) {
  return threads::answer(mem_migrate(address, node, moved), __func__, threads::at_address(address),
                         threads::on_node(node));
}

static int mem_distribute(const void* address, const uint32_t* nodes, uint32_t n_nodes,
                          size_t block, bosk_mem_moved_t* moved) {
  if (!is_sound(moved) || (nodes != nullptr && n_nodes == 0)) return BOSK_EINVAL;
  memory::AreaTable* areas = areas_to_move();
  if (areas == nullptr) return BOSK_ENOMEM;
  memory::AreaInfo area;
  if (!areas->look_up(number(address), &area)) return BOSK_ENOAREA;
  const uint32_t there = areas->nodes().count();
  for (uint32_t i = 0; nodes != nullptr && i < n_nodes; ++i)
    if (!areas->nodes().usable(nodes[i])) return BOSK_ENODE;
  const size_t list_bytes = there * sizeof(uint32_t);
  auto* all = static_cast<uint32_t*>(bosk::base::map_pages(list_bytes));
  if (all == nullptr) return BOSK_ENOMEM;
  if (nodes == nullptr) {
    nodes = all;
    n_nodes = 0;
    for (uint32_t node = 0; node < there; ++node)
      if (areas->nodes().usable(node)) all[n_nodes++] = node;
  }
  const size_t page = memory::page_size();
  if (block == 0 || block > area.bytes()) block = (area.bytes() + n_nodes - 1) / n_nodes;
  block = (block + page - 1) / page * page;
  memory::Moved sum;
  const int error = memory::distribute_area(*areas, area, nodes, n_nodes, block, &sum);
  bosk::base::unmap_pages(all, list_bytes);
  if (error == BOSK_OK && area.attachments != 0) threads::memory_has_changed();
  if (error == BOSK_OK) answer(sum, moved);
  return error;
}
BOSK_EXPORT int bosk_mem_distribute(const void* address, const uint32_t* nodes, uint32_t n_nodes,
                                    size_t block, bosk_mem_moved_t* moved) {
  return threads::answer(mem_distribute(address, nodes, n_nodes, block, moved), __func__,
                         threads::at_address(address));
}

BOSK_EXPORT int bosk_mem_migrate_thread(bosk_thread_t thread, int node, bosk_mem_moved_t* moved) {
  return threads::answer(migrate_all_of(thread, node, moved), __func__, threads::of_thread(thread),
                         threads::on_node(node));
}
BOSK_EXPORT int bosk_mem_migrate_bubble(bosk_bubble_t bubble, int node, bosk_mem_moved_t* moved) {
  return threads::answer(migrate_all_of(bubble, node, moved), __func__, threads::of_bubble(bubble),
                         threads::on_node(node));
}

BOSK_EXPORT int bosk_mem_next_touch(void* begin, size_t bytes, int flags) {
  if ((flags & ~kAllFlags) != 0)
    return threads::answer(int{BOSK_EINVAL}, __func__, threads::at_address(begin));
  memory::AreaTable* areas;
  memory::AreaInfo area;
  uintptr_t from;
  const auto about = threads::at_address(begin);
  const int error = find_range(begin, &bytes, &areas, &area, &from);
  if (error != BOSK_OK) return threads::answer(error, __func__, about);
  const int marked = mark(*areas, area, from, bytes, flags);
  return threads::answer_because(code_of(marked), __func__, memory::next_touch_error_text(marked),
                                 about);
}

static int mem_next_touch_cancel(void* begin, size_t bytes) {
  memory::AreaTable* areas;
  memory::AreaInfo area;
  uintptr_t from;
  const int error = find_range(begin, &bytes, &areas, &area, &from);
  if (error != BOSK_OK) return error;
  const int cancelled = memory::next_touch_cancel(reinterpret_cast<void*>(from), bytes);
  const std::lock_guard asking(areas->asking());
  areas->set_coming(area, memory::look_at_marks(area));
  return code_of(cancelled);
}
BOSK_EXPORT int bosk_mem_next_touch_cancel(void* begin, size_t bytes) {
  return threads::answer(mem_next_touch_cancel(begin, bytes), __func__, threads::at_address(begin));
}

static int64_t mem_next_touch_query(const void* begin, size_t bytes, uint64_t* pages) {
  memory::AreaTable* areas;
  memory::AreaInfo area;
  uintptr_t from;
  int error = find_range(begin, &bytes, &areas, &area, &from);
  memory::NextTouchState state{};
  if (error == BOSK_OK)
    error = code_of(memory::next_touch_query(reinterpret_cast<void*>(from), bytes, &state));
  if (error != BOSK_OK) return error;
  if (pages != nullptr) *pages = state.pages;
  return static_cast<int64_t>(state.marked);
}
BOSK_EXPORT int64_t bosk_mem_next_touch_query(const void* begin, size_t bytes, uint64_t* pages) {
  return threads::answer(mem_next_touch_query(begin, bytes, pages), __func__,
                         threads::at_address(begin));
}

BOSK_EXPORT int bosk_mem_next_touch_thread(bosk_thread_t thread, int flags) {
  return threads::answer(mark_all_of(thread, flags), __func__, threads::of_thread(thread));
}
BOSK_EXPORT int bosk_mem_next_touch_bubble(bosk_bubble_t bubble, int flags) {
  return threads::answer(mark_all_of(bubble, flags), __func__, threads::of_bubble(bubble));
}
