// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/memory.h: allocation.
#include <bosk/memory.h>
#include <errno.h>
#include <string.h>

#include "abi/bosk/answer.h"
#include "abi/gomp/export.h"
#include "memory/allocate.h"
#include "memory/heaps.h"
#include "memory/next_touch/next_touch.h"
#include "memory/page_blocks.h"
#include "memory/system_blocks.h"
#include "memory/thread_heaps.h"
#include "threads/attached.h"

namespace memory = bosk::memory;
namespace threads = bosk::threads;

namespace {

void* or_errno(void* block, int error) {
  if (BOSK_UNLIKELY(block == nullptr)) errno = error;
  return block;
}

bool is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

/// The caller's attributes, or the defaults; false: they make no sense. What a later version has more must be as it is made
/// by default, which is 0.
bool read_attributes(const bosk_mem_attr_t* given, bosk_mem_attr_t* attr) {
  if (given == nullptr) return bosk_mem_attr_init(attr) == BOSK_OK;
  constexpr size_t kMostOfAnyVersion = 4096;
  if (given->size < sizeof *attr || given->size > kMostOfAnyVersion) return false;
  const char* bytes = reinterpret_cast<const char*>(given);
  for (size_t i = sizeof *attr; i < given->size; ++i)
    if (bytes[i] != 0) return false;
  *attr = *given;
  return attr->policy <= BOSK_MEM_NEXT_TOUCH && attr->pages <= BOSK_MEM_PAGES_RESERVED_HUGE &&
         (attr->alignment == 0 || is_power_of_two(attr->alignment)) &&
         (attr->thread == nullptr || attr->bubble == nullptr) && attr->use >= BOSK_MEM_READS &&
         attr->use <= BOSK_MEM_READS_AND_WRITES && (attr->nodes == nullptr || attr->n_nodes != 0);
}

/// The request that the attributes make of the manager.
memory::PageRequest request_for(size_t bytes, const bosk_mem_attr_t& attr) {
  memory::PageRequest request;
  request.bytes = bytes;
  request.alignment = attr.alignment;
  request.placement = static_cast<memory::Placement>(attr.policy);
  request.node = attr.node;
  request.nodes = attr.nodes;
  request.n_nodes = attr.n_nodes;
  request.pages = static_cast<memory::PageBacking>(attr.pages);
  return request;
}

/// With no policy of its own it goes where its owner is.
int place_by_owner(const bosk_mem_attr_t& attr, memory::PageRequest* request) {
  if (attr.thread == nullptr && attr.bubble == nullptr) return BOSK_OK;
  memory::NodeIndex node = memory::kNone;
  int error = BOSK_OK;
  if (attr.thread != nullptr) error = threads::best_node(attr.thread, &node);
  if (attr.bubble != nullptr) error = threads::best_node(attr.bubble, &node);
  if (error != BOSK_OK || attr.policy != BOSK_MEM_DEFAULT) return error;
  request->placement =
      node != memory::kNone ? memory::Placement::kOnNode : memory::Placement::kFirstTouch;
  request->node = node;
  return BOSK_OK;
}

/// Without books, while the machine is read for them or because it cannot be, memory is wherever the system has some.
void* allocate_any(size_t bytes, size_t alignment, bool zeroed) {
  memory::AreaTable* areas = threads::memory_areas();
  return or_errno(areas != nullptr ? memory::allocate(*areas, bytes, alignment, zeroed)
                                   : memory::system_allocate(bytes, alignment, zeroed),
                  ENOMEM);
}

// What follows the hand stands aside, so that the way through the hand needs no frame.
[[gnu::noinline]] void* allocate_anew(size_t bytes) {
  return allocate_any(bytes, memory::kHeapAlignment, false);
}

[[gnu::noinline]] int give_back(void* block) {
  if (block == nullptr) return BOSK_OK;
  memory::AreaTable* areas = threads::memory_areas();
  if (areas == nullptr) return memory::system_free(block) ? BOSK_OK : BOSK_ENOAREA;
  memory::AreaInfo area;
  const bool attached = BOSK_UNLIKELY(threads::policies_mind_memory()) &&
                        areas->look_up(reinterpret_cast<uintptr_t>(block), &area) &&
                        area.attachments != 0;
  const int error = memory::release(*areas, block);
  if (attached && error == BOSK_OK) threads::memory_has_changed();
  return error;
}

void* reallocate_without_books(void* block, size_t bytes, int* error) {
  size_t before;
  *error = BOSK_ENOAREA;
  if (!memory::system_size(block, &before)) return nullptr;
  *error = BOSK_ENOMEM;
  void* moved = memory::system_allocate(bytes, memory::kHeapAlignment, false);
  if (moved == nullptr) return nullptr;
  memcpy(moved, block, before < bytes ? before : bytes);
  memory::system_free(block);
  return moved;
}

}  // namespace

BOSK_EXPORT void* bosk_malloc(size_t bytes) {
  if (void* block = memory::take_from_hand(bytes)) return block;
  return allocate_anew(bytes);
}

BOSK_EXPORT void* bosk_calloc(size_t count, size_t each) {
  size_t bytes;
  if (__builtin_mul_overflow(count, each, &bytes)) return or_errno(nullptr, ENOMEM);
  return allocate_any(bytes, memory::kHeapAlignment, true);
}

BOSK_EXPORT void* bosk_aligned_alloc(size_t alignment, size_t bytes) {
  if (!is_power_of_two(alignment)) return or_errno(nullptr, EINVAL);
  return allocate_any(bytes, alignment, false);
}

BOSK_EXPORT void* bosk_malloc_on(size_t bytes, int node) {
  memory::AreaTable* areas = threads::memory_areas();
  if (areas == nullptr) return or_errno(nullptr, ENOMEM);
  if (node < 0 || !areas->nodes().usable(static_cast<memory::NodeIndex>(node)))
    return or_errno(nullptr, EINVAL);
  return or_errno(memory::allocate_on(*areas, static_cast<memory::NodeIndex>(node), bytes), ENOMEM);
}

BOSK_EXPORT int bosk_free(void* block) {
  if (memory::put_in_hand(block)) return BOSK_OK;
  const int error = give_back(block);
  // A program's own free() may come from anywhere: nothing is made for a thread that is not known yet.
  if (BOSK_LIKELY(error == BOSK_OK) || bosk::context::self() == nullptr) return error;
  return threads::answer(error, __func__, threads::at_address(block));
}

BOSK_EXPORT void* bosk_realloc(void* block, size_t bytes) {
  if (block == nullptr) return bosk_malloc(bytes);
  memory::AreaTable* areas = threads::memory_areas();
  int error = BOSK_ENOMEM;
  void* moved = areas != nullptr ? memory::reallocate(*areas, block, bytes, &error)
                                 : reallocate_without_books(block, bytes, &error);
  return or_errno(moved, error == BOSK_ENOAREA ? EINVAL : ENOMEM);
}

BOSK_EXPORT size_t bosk_malloc_size(const void* block) {
  if (block == nullptr) return 0;
  memory::AreaTable* areas = threads::memory_areas();
  size_t bytes;
  const bool is_block = areas != nullptr ? memory::size_of(*areas, block, &bytes) == BOSK_OK
                                         : memory::system_size(block, &bytes);
  return is_block ? bytes : 0;
}

BOSK_EXPORT int bosk_mem_attr_init_sized(bosk_mem_attr_t* attr, size_t size) {
  if (attr == nullptr || size != sizeof *attr) return BOSK_EINVAL;
  memset(attr, 0, sizeof *attr);
  attr->size = sizeof *attr;
  attr->use = BOSK_MEM_READS_AND_WRITES;
  attr->times = BOSK_UNKNOWN;
  return BOSK_OK;
}

static int mem_alloc(void** block, size_t bytes, const bosk_mem_attr_t* given) {
  bosk_mem_attr_t attr;
  if (block == nullptr || bytes == 0 || !read_attributes(given, &attr)) return BOSK_EINVAL;
  memory::AreaTable* areas = threads::memory_areas();
  if (areas == nullptr) return BOSK_ENOMEM;
  memory::PageRequest request = request_for(bytes, attr);
  int error = place_by_owner(attr, &request);
  void* made = nullptr;
  if (error == BOSK_OK) error = memory::allocate_pages(*areas, request, &made);
  if (error != BOSK_OK) return error;
  const auto use = static_cast<int>(attr.use);
  if (attr.thread != nullptr) error = threads::attach_thread(made, attr.thread, use, attr.times);
  if (attr.bubble != nullptr) error = threads::attach_bubble(made, attr.bubble, use, attr.times);
  if (error != BOSK_OK) {
    memory::free_pages(*areas, made);
    return error;
  }
  *block = made;
  return BOSK_OK;
}
BOSK_EXPORT int bosk_mem_alloc(void** block, size_t bytes, const bosk_mem_attr_t* given) {
  const int error = mem_alloc(block, bytes, given);
  // What the attributes name has been read where the code says so.
  if (given != nullptr && error == BOSK_ENODE && given->policy == BOSK_MEM_ON_NODE)
    return threads::answer(error, __func__, threads::on_node(static_cast<int>(given->node)));
  if (given != nullptr && (error == BOSK_ESTALE || error == BOSK_ESTATE))
    return threads::answer(error, __func__, threads::of_thread(given->thread),
                           threads::of_bubble(given->bubble));
  return threads::answer(error, __func__);
}

BOSK_EXPORT int bosk_mem_trim() {
  memory::heap_trim();
  memory::next_touch_trim();
  return BOSK_OK;
}
