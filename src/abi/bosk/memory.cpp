// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/memory.h: areas and what is attached to whom.
#include <bosk/memory.h>
#include <string.h>

#include <mutex>

#include "abi/bosk/answer.h"
#include "abi/gomp/export.h"
#include "memory/area_migration.h"
#include "memory/heaps.h"
#include "memory/node_stats.h"
#include "memory/page_nodes.h"
#include "memory/print.h"
#include "threads/attached.h"

namespace memory = bosk::memory;
namespace threads = bosk::threads;

namespace {

/// The table, or an answer that there is none.
#define BOSK_AREAS(name)                                   \
  memory::AreaTable* const name = threads::memory_areas(); \
  if ((name) == nullptr) return BOSK_ENOMEM

uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

/// Bytes per node for the time of a call: few machines have more nodes than fit on the stack.
class NodeBytes {
 public:
  explicit NodeBytes(uint32_t nodes) : mapped_(nodes > kOnStack ? nodes * sizeof(uint64_t) : 0) {
    at_ = mapped_ != 0 ? static_cast<uint64_t*>(bosk::base::map_pages(mapped_)) : few_;
  }
  ~NodeBytes() {
    if (mapped_ != 0) bosk::base::unmap_pages(at_, mapped_);
  }
  NodeBytes(const NodeBytes&) = delete;
  NodeBytes& operator=(const NodeBytes&) = delete;
  /// Null: no memory.
  uint64_t* get() { return at_; }

 private:
  static constexpr uint32_t kOnStack = 16;
  size_t mapped_;
  uint64_t few_[kOnStack];
  uint64_t* at_;
};

/// Policies that go by what is attached hear of it.
int changed(int error, bool attached) {
  if (error == BOSK_OK && attached) threads::memory_has_changed();
  return error;
}

constexpr size_t kMostOfAnyVersion = 4096;

template <typename Struct>
bool is_sound(const Struct* out) {
  return out != nullptr && out->size >= sizeof(Struct) && out->size <= kMostOfAnyVersion;
}

struct Page {
  memory::NodeIndex node;  ///< kNone: on none, or not known
  bool marked;
  bool on_write;
};
/// Its place may be empty while it is marked; the data are somewhere else then.
Page look_at_page(const memory::AreaTable& areas, const void* address) {
  const memory::NextTouchPage of_next_touch = memory::next_touch_look_at(address);
  const memory::MachineNodes& nodes = areas.nodes();
  if (!of_next_touch.marked) return {memory::node_of_page(nodes, number(address)), false, false};
  return {of_next_touch.node >= 0 ? nodes.from_kernel(static_cast<uint32_t>(of_next_touch.node))
                                  : memory::kNone,
          true, of_next_touch.on_write};
}

/// What a later version has more is zero.
template <typename Struct>
void clear(Struct* out) {
  const size_t size = out->size;
  memset(static_cast<void*>(out), 0, size);
  out->size = size;
}

}  // namespace

static int mem_register(void* begin, size_t bytes) {
  uintptr_t end;
  if (begin == nullptr || bytes == 0 || __builtin_add_overflow(number(begin), bytes, &end))
    return BOSK_EINVAL;
  BOSK_AREAS(areas);
  memory::AreaInfo own;
  const int adopted = areas->adopt(number(begin), bytes, &own);
  if (adopted == BOSK_OK) memory::refresh_area(*areas, own);
  if (adopted != BOSK_ENOAREA) return adopted;
  if (!memory::is_mapped(number(begin), bytes)) return BOSK_EUNMAPPED;
  NodeBytes on(areas->nodes().count());
  if (on.get() == nullptr) return BOSK_ENOMEM;
  memory::look_at_pages(areas->nodes(), number(begin), bytes, on.get());
  memory::NewArea area{number(begin), bytes};
  area.bytes_on = on.get();
  return areas->add(area);
}
BOSK_EXPORT int bosk_mem_register(void* begin, size_t bytes) {
  return threads::answer(mem_register(begin, bytes), __func__, threads::at_address(begin));
}

static int mem_unregister(void* begin) {
  BOSK_AREAS(areas);
  memory::AreaInfo removed;
  int error = areas->remove(number(begin), memory::Origin::kForeign, &removed);
  if (error == BOSK_ENOAREA) error = areas->disown(number(begin), &removed);
  if (error == BOSK_OK) memory::forget_marks_of_gone(removed);
  return changed(error, removed.attachments != 0);
}
BOSK_EXPORT int bosk_mem_unregister(void* begin) {
  return threads::answer(mem_unregister(begin), __func__, threads::at_address(begin));
}

static int mem_split(void* begin, size_t parts, void** begins) {
  BOSK_AREAS(areas);
  memory::AreaInfo area;
  if (!areas->look_up(number(begin), &area)) return BOSK_ENOAREA;
  const size_t page = area.huge_page != 0 ? area.huge_page : memory::page_size();
  return areas->split(number(begin), parts, page, begins);
}
BOSK_EXPORT int bosk_mem_split(void* begin, size_t parts, void** begins) {
  return threads::answer(mem_split(begin, parts, begins), __func__, threads::at_address(begin));
}

static int mem_area(const void* address, bosk_mem_area_t* out) {
  if (address == nullptr || !is_sound(out)) return BOSK_EINVAL;
  BOSK_AREAS(areas);
  areas->forget_gone_owners();
  memory::AreaInfo area;
  if (!areas->look_up(number(address), &area)) return BOSK_ENOAREA;
  clear(out);
  out->begin = reinterpret_cast<void*>(area.begin);
  out->bytes = area.bytes();
  out->policy = static_cast<uint32_t>(area.placement);
  out->node = area.node;
  out->allocated = area.is_own() ? 1 : 0;
  out->attached = area.attachments;
  out->huge_page = area.huge_page;
  return BOSK_OK;
}
BOSK_EXPORT int bosk_mem_area(const void* address, bosk_mem_area_t* out) {
  return threads::answer(mem_area(address, out), __func__, threads::at_address(address));
}

static int mem_area_nodes(const void* address, uint64_t* bytes, int nodes) {
  if (address == nullptr || bytes == nullptr || nodes < 1) return BOSK_EINVAL;
  BOSK_AREAS(areas);
  const uint32_t there = areas->nodes().count();
  NodeBytes on(there);
  if (on.get() == nullptr) return BOSK_ENOMEM;
  threads::bring_books_up_to_date();
  memory::AreaInfo area;
  if (!areas->look_up(number(address), &area, on.get())) return BOSK_ENOAREA;
  for (uint32_t i = 0; i < static_cast<uint32_t>(nodes); ++i)
    bytes[i] = i < there ? on.get()[i] : 0;
  return static_cast<int>(there);
}
BOSK_EXPORT int bosk_mem_area_nodes(const void* address, uint64_t* bytes, int nodes) {
  return threads::answer(mem_area_nodes(address, bytes, nodes), __func__,
                         threads::at_address(address));
}

static int mem_update(const void* address) {
  BOSK_AREAS(areas);
  const uint32_t nodes = areas->nodes().count();
  NodeBytes before(nodes);
  NodeBytes on(nodes);
  if (before.get() == nullptr || on.get() == nullptr) return BOSK_ENOMEM;
  memory::AreaInfo area;
  if (!areas->look_up(number(address), &area, before.get())) return BOSK_ENOAREA;
  // Of an invented machine the books are all there is.
  if (!areas->nodes().real()) return BOSK_OK;
  {
    const std::lock_guard asking(areas->asking());
    memory::look_at_pages(areas->nodes(), area.begin, area.bytes(), on.get());
    areas->set_bytes(area, on.get());
    areas->set_coming(area, memory::look_at_marks(area));
  }
  const bool news = memcmp(before.get(), on.get(), nodes * sizeof(uint64_t)) != 0;
  return changed(BOSK_OK, news && area.attachments != 0);
}
BOSK_EXPORT int bosk_mem_update(const void* address) {
  return threads::answer(mem_update(address), __func__, threads::at_address(address));
}

static int mem_locate(const void* address) {
  if (address == nullptr) return BOSK_EINVAL;
  BOSK_AREAS(areas);
  if (!memory::is_mapped(number(address), 1)) return BOSK_EUNMAPPED;
  const memory::NodeIndex node = look_at_page(*areas, address).node;
  return node != memory::kNone ? static_cast<int>(node) : static_cast<int>(BOSK_ENOENT);
}
BOSK_EXPORT int bosk_mem_locate(const void* address) {
  return threads::answer(mem_locate(address), __func__, threads::at_address(address));
}

static int mem_page(const void* address, bosk_mem_page_t* out) {
  if (address == nullptr || !is_sound(out)) return BOSK_EINVAL;
  BOSK_AREAS(areas);
  if (!memory::is_mapped(number(address), 1)) return BOSK_EUNMAPPED;
  const Page page = look_at_page(*areas, address);
  clear(out);
  out->node = page.node;
  out->marked = page.marked ? 1 : 0;
  out->on_write = page.on_write ? 1 : 0;
  return BOSK_OK;
}
static_assert(memory::kNone == BOSK_UNKNOWN);
BOSK_EXPORT int bosk_mem_page(const void* address, bosk_mem_page_t* page) {
  return threads::answer(mem_page(address, page), __func__, threads::at_address(address));
}

BOSK_EXPORT int bosk_mem_attach_thread(const void* address, bosk_thread_t thread, int use,
                                       uint32_t times) {
  return threads::answer(threads::attach_thread(address, thread, use, times), __func__,
                         threads::at_address(address), threads::of_thread(thread));
}
BOSK_EXPORT int bosk_mem_attach_bubble(const void* address, bosk_bubble_t bubble, int use,
                                       uint32_t times) {
  return threads::answer(threads::attach_bubble(address, bubble, use, times), __func__,
                         threads::at_address(address), threads::of_bubble(bubble));
}
BOSK_EXPORT int bosk_mem_detach_thread(const void* address, bosk_thread_t thread) {
  return threads::answer(threads::detach_thread_from(address, thread), __func__,
                         threads::at_address(address), threads::of_thread(thread));
}
BOSK_EXPORT int bosk_mem_detach_bubble(const void* address, bosk_bubble_t bubble) {
  return threads::answer(threads::detach_bubble_from(address, bubble), __func__,
                         threads::at_address(address), threads::of_bubble(bubble));
}
static int mem_detach_area(const void* address) {
  BOSK_AREAS(areas);
  return changed(areas->detach_all_of_area(number(address)), true);
}
BOSK_EXPORT int bosk_mem_detach_area(const void* address) {
  return threads::answer(mem_detach_area(address), __func__, threads::at_address(address));
}
BOSK_EXPORT int bosk_mem_detach_all_thread(bosk_thread_t thread) {
  return threads::answer(threads::detach_all_of_thread(thread), __func__,
                         threads::of_thread(thread));
}
BOSK_EXPORT int bosk_mem_detach_all_bubble(bosk_bubble_t bubble) {
  return threads::answer(threads::detach_all_of_bubble(bubble), __func__,
                         threads::of_bubble(bubble));
}
BOSK_EXPORT int bosk_mem_thread_footprint(bosk_thread_t thread, uint64_t* bytes, int nodes) {
  return threads::answer(threads::thread_footprint(thread, bytes, nodes), __func__,
                         threads::of_thread(thread));
}
BOSK_EXPORT int bosk_mem_bubble_footprint(bosk_bubble_t bubble, uint64_t* bytes, int nodes) {
  return threads::answer(threads::bubble_footprint(bubble, bytes, nodes), __func__,
                         threads::of_bubble(bubble));
}

BOSK_EXPORT int bosk_mem_redecide(bosk_bubble_t bubble, int when) {
  return threads::answer(threads::redecide(bubble, when), __func__, threads::of_bubble(bubble));
}

static int mem_node_stats(int node, bosk_mem_stats_t* out) {
  if (!is_sound(out)) return BOSK_EINVAL;
  BOSK_AREAS(areas);
  if (node < 0 || static_cast<uint32_t>(node) >= areas->nodes().count()) return BOSK_ENODE;
  const auto index = static_cast<memory::NodeIndex>(node);
  const memory::NodeMemory known = memory::memory_of_node(areas->nodes(), index);
  clear(out);
  out->total = known.total;
  out->free = known.free;
  out->areas = areas->bytes_on(index);
  const memory::HeapUse heap = memory::heap_use(index);
  out->reserved = heap.reserved;
  out->used = heap.used;
  return BOSK_OK;
}
BOSK_EXPORT int bosk_mem_node_stats(int node, bosk_mem_stats_t* out) {
  return threads::answer(mem_node_stats(node, out), __func__, threads::on_node(node));
}

static int mem_least_loaded() {
  BOSK_AREAS(areas);
  const memory::NodeIndex node = memory::least_loaded_node(areas->nodes());
  return node != memory::kNone ? static_cast<int>(node) : static_cast<int>(BOSK_ENODE);
}
BOSK_EXPORT int bosk_mem_least_loaded() { return threads::answer(mem_least_loaded(), __func__); }

static int mem_print(int fd) {
  BOSK_AREAS(areas);
  return memory::print(*areas, fd) ? BOSK_OK : BOSK_EIO;
}
BOSK_EXPORT int bosk_mem_print(int fd) { return threads::answer(mem_print(fd), __func__); }
