// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attaches memory to threads and bubbles.
//
// The table's lock comes before the guards of records, because it sleeps: attach() asks admit() under it,
// which looks, under the guard, whether the entity is still there, and hands it the footprint. When an entity ends its life
// is set to kFree under its guard first; so either admit() refuses, or who ends it sees the footprint and
// says that the owner has gone.
#include "threads/attached.h"

#include <bosk/memory.h>
#include "base/pages.h"

#include "memory/area_migration.h"
#include "memory/manager.h"
#include "omp/machine_aside.h"
#include "sched/bubble_tree_footprints.h"
#include "threads/api.h"
#include "threads/bubble_memory.h"
#include "threads/machine_queries.h"

namespace bosk::threads {
namespace {

constexpr int kReadsAndWrites = memory::kReads | memory::kWrites;

/// Who ended, joined or not, works on nothing.
int check_life(const ThreadRecord& thread) {
  const Life life = thread.life.load(std::memory_order_relaxed);
  return life == Life::kEnding || life == Life::kEnded ? BOSK_ESTATE : BOSK_OK;
}
int check_life(const BubbleRecord&) { return BOSK_OK; }

template <typename HeldRecord, typename Handle>
int check(Handle handle) {
  Inside inside(omp::current_thread());
  HeldRecord held(handle);
  return held ? check_life(*held) : static_cast<int>(BOSK_ESTALE);
}

template <typename HeldRecord, typename Handle>
int admit(void* handle, const std::atomic<uint64_t>* footprint) {
  Inside inside(omp::current_thread());
  HeldRecord held(*static_cast<Handle*>(handle));
  if (!held) return BOSK_ESTALE;
  if (const int error = check_life(*held)) return error;
  // release: policies that see it find it zeroed and counted.
  held->figures.footprint.store(footprint, std::memory_order_release);
  return BOSK_OK;
}

/// Policies that go by footprints may want to look at who runs already.
int tell_policies(int error) {
  if (error == BOSK_OK) memory_has_changed();
  return error;
}

template <typename HeldRecord, typename Handle>
int attach(const void* address, Handle handle, int use, uint32_t times) {
  if (address == nullptr || use < 1 || use > kReadsAndWrites) return BOSK_EINVAL;
  memory::AreaTable* table = memory_areas();
  if (table == nullptr) return BOSK_ENOMEM;
  if (Home* h = home()) ensure_bubbles_are_served(omp::current_thread(), h);
  return tell_policies(table->attach(reinterpret_cast<uintptr_t>(address), owner_of(handle),
                                     static_cast<uint8_t>(use), times, admit<HeldRecord, Handle>,
                                     &handle));
}

template <typename HeldRecord, typename Handle>
int detach(const void* address, Handle handle) {
  if (address == nullptr) return BOSK_EINVAL;
  if (const int error = check<HeldRecord>(handle)) return error;
  memory::AreaTable* table = memory_areas();
  if (table == nullptr) return BOSK_ENOMEM;
  return tell_policies(table->detach(reinterpret_cast<uintptr_t>(address), owner_of(handle)));
}

template <typename HeldRecord, typename Handle>
int detach_all(Handle handle) {
  if (const int error = check<HeldRecord>(handle)) return error;
  if (memory::AreaTable* table = memory::areas()) table->detach_all(owner_of(handle));
  return tell_policies(BOSK_OK);
}

template <typename HeldRecord, typename Handle>
int footprint(Handle handle, uint64_t* bytes, int nodes) {
  if (bytes == nullptr || nodes < 1) return BOSK_EINVAL;
  bring_books_up_to_date();
  Inside inside(omp::current_thread());
  HeldRecord held(handle);
  if (!held) return BOSK_ESTALE;
  const auto room = static_cast<uint32_t>(nodes);
  const uint32_t there = home()->machine->n_nodes;
  for (uint32_t i = 0; i < room; ++i) bytes[i] = 0;
  sched::add_footprint(*held, bytes, there < room ? there : room);
  return static_cast<int>(there);
}

/// The node with most of its own footprint; kNone: nothing is known.
memory::NodeIndex heaviest_node(const sched::TreeEntity& entity, uint32_t nodes) {
  // acquire: it is zeroed and counted when it is seen.
  const auto* footprint = entity.figures.footprint.load(std::memory_order_acquire);
  memory::NodeIndex heaviest = memory::kNone;
  uint64_t most = 0;
  for (uint32_t node = 0; footprint != nullptr && node < nodes; ++node) {
    const uint64_t bytes = footprint[node].load(std::memory_order_relaxed);
    if (bytes <= most) continue;
    heaviest = node;
    most = bytes;
  }
  return heaviest;
}

template <typename HeldRecord, typename Handle>
int find_node(Handle handle, memory::NodeIndex* node) {
  Inside inside(omp::current_thread());
  HeldRecord held(handle);
  if (!held) return BOSK_ESTALE;
  if (const int error = check_life(*held)) return error;
  const topology::Machine& machine = *home()->machine;
  const uint32_t domain = held->figures.last_domain.load(std::memory_order_relaxed);
  *node = domain < machine.n_domains ? machine.node_of_pu(machine.domain_array[domain].first_pu)
                                     : heaviest_node(*held, machine.n_nodes);
  return BOSK_OK;
}

/// Elements in pages of their own, for the time of a call.
template <typename Element>
class Pages {
 public:
  // NOLINTBEGIN(bugprone-sizeof-expression): Element may well be a pointer
  explicit Pages(uint32_t room)
      : bytes_(size_t{room} * sizeof(Element)),
        at_(static_cast<Element*>(base::map_pages(bytes_))) {}
  // NOLINTEND(bugprone-sizeof-expression)
  ~Pages() { base::unmap_pages(at_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  Element* get() { return at_; }

 private:
  size_t bytes_;
  Element* at_;
};

/// How many of them have a footprint; the first `room` are filled in. A code if there is no such entity.
template <typename HeldRecord, typename Handle>
int find_footprints(Handle handle, const std::atomic<uint64_t>** footprints, uint32_t room) {
  Inside inside(omp::current_thread());
  HeldRecord held(handle);
  if (!held) return BOSK_ESTALE;
  if (const int error = check_life(*held)) return error;
  return static_cast<int>(sched::footprints_in(*held, footprints, room));
}

int each_use(memory::AreaTable& table, const std::atomic<uint64_t>* footprint, EachArea each,
             void* context) {
  const uint32_t room = table.uses_of(footprint, nullptr, 0);
  if (room == 0) return BOSK_OK;
  Pages<memory::AreaUse> uses(room);
  if (uses.get() == nullptr) return BOSK_ENOMEM;
  const uint32_t found = table.uses_of(footprint, uses.get(), room);
  for (uint32_t i = 0; i < found && i < room; ++i) each(context, uses.get()[i].area);
  return BOSK_OK;
}

template <typename HeldRecord, typename Handle>
int each_area(Handle handle, EachArea each, void* context) {
  const int room = find_footprints<HeldRecord>(handle, nullptr, 0);
  if (room <= 0) return room;
  Pages<const std::atomic<uint64_t>*> footprints(static_cast<uint32_t>(room));
  if (footprints.get() == nullptr) return BOSK_ENOMEM;
  const int found =
      find_footprints<HeldRecord>(handle, footprints.get(), static_cast<uint32_t>(room));
  if (found < 0) return found;
  for (int i = 0; i < found && i < room; ++i)
    if (const int error = each_use(*memory::areas(), footprints.get()[i], each, context))
      return error;
  return BOSK_OK;
}

}  // namespace

memory::AreaTable* memory_areas() {
  memory::AreaTable* table = memory::areas();
  if (BOSK_LIKELY(table != nullptr)) return table;
  if (omp::is_reading_machine()) return nullptr;
  const topology::Machine* machine = machine_of_process();
  return machine != nullptr ? memory::start(*machine) : nullptr;
}

int attach_thread(const void* address, bosk_thread_t thread, int use, uint32_t times) {
  return attach<HeldThread>(address, thread, use, times);
}
int attach_bubble(const void* address, bosk_bubble_t bubble, int use, uint32_t times) {
  return attach<HeldBubble>(address, bubble, use, times);
}
int detach_thread_from(const void* address, bosk_thread_t thread) {
  return detach<HeldThread>(address, thread);
}
int detach_bubble_from(const void* address, bosk_bubble_t bubble) {
  return detach<HeldBubble>(address, bubble);
}
int detach_all_of_thread(bosk_thread_t thread) { return detach_all<HeldThread>(thread); }
int detach_all_of_bubble(bosk_bubble_t bubble) { return detach_all<HeldBubble>(bubble); }
int thread_footprint(bosk_thread_t thread, uint64_t* bytes, int nodes) {
  return footprint<HeldThread>(thread, bytes, nodes);
}
int bubble_footprint(bosk_bubble_t bubble, uint64_t* bytes, int nodes) {
  return footprint<HeldBubble>(bubble, bytes, nodes);
}
int best_node(bosk_thread_t thread, memory::NodeIndex* node) {
  return find_node<HeldThread>(thread, node);
}
int best_node(bosk_bubble_t bubble, memory::NodeIndex* node) {
  return find_node<HeldBubble>(bubble, node);
}
int each_area_of(bosk_thread_t thread, EachArea each, void* context) {
  return each_area<HeldThread>(thread, each, context);
}
int each_area_of(bosk_bubble_t bubble, EachArea each, void* context) {
  return each_area<HeldBubble>(bubble, each, context);
}
void bring_books_up_to_date() {
  memory::AreaTable* table = memory::areas();
  if (table != nullptr && memory::refresh_coming_areas(*table)) memory_has_changed();
}
void memory_has_changed() {
  if (Home* h = home()) h->engine.memory_changed(policies::MemoryTrigger::kAttached);
}
bool policies_mind_memory() {
  Home* h = home();
  return h != nullptr && h->engine.minds_memory();
}
int redecide(bosk_bubble_t handle, int when) {
  if (when != BOSK_MEM_AT_ONCE && when != BOSK_MEM_WHEN_ALL) return BOSK_EINVAL;
  sched::Thread* me = omp::current_thread();
  Home* h = home();
  if (h == nullptr) return BOSK_ESTALE;  // nobody has made a bubble yet
  {
    Inside inside(me);
    // What is around the bubble stays around it.
    base::SpinGuard nesting(h->nesting);
    HeldBubble bubble(handle);
    if (!bubble) return BOSK_ESTALE;
    if (when == BOSK_MEM_WHEN_ALL &&
        !policies::PolicyEngine::comes_last(*bubble, sched::summarize(*bubble).threads))
      return 0;
    if (!h->engine.moves_data())
      return h->engine.redecide(*bubble, policies::MemoryTrigger::kHint) ? 1 : 0;
  }
  return decide_about_memory(me, handle, policies::MemoryTrigger::kHint);
}
int check_thread(bosk_thread_t thread) { return check<HeldThread>(thread); }
int check_bubble(bosk_bubble_t bubble) { return check<HeldBubble>(bubble); }

void forget_attached(sched::TreeEntity& entity) {
  const auto* footprint = entity.figures.footprint.exchange(nullptr, std::memory_order_relaxed);
  memory::areas()->owner_gone(footprint);
}

}  // namespace bosk::threads
