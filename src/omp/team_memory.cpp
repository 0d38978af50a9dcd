// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds owners, and attaches memory to them.
#include "omp/team_memory.h"

#include <bosk/error.h>
#include <stdlib.h>

#include <new>

#include "base/pages.h"
#include "memory/area_migration.h"
#include "memory/manager.h"
#include "memory/next_touch/next_touch.h"
#include "memory/page_nodes.h"
#include "omp/follow_memory.h"
#include "omp/machine_aside.h"
#include "omp/memory_book.h"
#include "omp/open_teams.h"
#include "omp/placing.h"
#include "omp/team.h"
#include "omp/watched_teams.h"

namespace bosk::omp {

namespace {

using OnNodes = policies::TeamFootprints::OnNodes;

/// Null: no memory for it.
TeamMemory* find_or_make(sched::Thread* me, ContentionGroup* group, uint64_t key) {
  static constinit std::atomic<uint64_t> serials{0};
  bool made;
  MemoryBook* book = book_in(group->memory, &made);
  if (book == nullptr) return nullptr;
  if (made) list_book(me, book);
  const auto is = [](const TeamMemory&) { return true; };
  const auto make = [&]() -> TeamMemory* {
    if (book->places.load(std::memory_order_relaxed) >= MemoryBook::kMost) return nullptr;
    void* room = malloc(sizeof(TeamMemory));
    if (room == nullptr) return nullptr;
    auto* memory = new (room) TeamMemory;
    memory->key = key;
    memory->serial = serials.fetch_add(1, std::memory_order_relaxed) + 1;
    return memory;
  };
  bool added;
  TeamMemory* memory = book->find_or_add(key, is, make, free, &added);
  if (added) book->places.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

/// Null: nothing was ever attached there.
TeamMemory* find_at(const NestPlace& place) {
  const MemoryBook* book = place.group()->memory.load(std::memory_order_acquire);
  if (book == nullptr) return nullptr;
  return book->find(place.key());
}

memory::AreaTable* table() {
  if (memory::AreaTable* known = memory::areas()) return known;
  const topology::Machine* machine = read_machine_aside();
  return machine != nullptr ? memory::start(*machine) : nullptr;
}

/// Room for the member's footprint. Under the table's lock, so nobody else makes it larger.
std::atomic<OnNodes>* room_for(TeamMemory* memory, uint32_t member) {
  MemberMemory* old = memory->members.load(std::memory_order_relaxed);
  if (old != nullptr && member < old->count) return &old->footprints()[member];
  uint32_t count = old != nullptr ? old->count : 8;
  while (count <= member) count *= 2;
  void* room =
      malloc(sizeof(MemberMemory) + count * (sizeof(std::atomic<OnNodes>) + sizeof(HomeNode)));
  if (room == nullptr) return nullptr;
  auto* grown = new (room) MemberMemory{count, old};
  for (uint32_t i = 0; i < count; ++i) {
    const bool had = old != nullptr && i < old->count;
    new (&grown->footprints()[i])
        std::atomic<OnNodes>(had ? old->footprints()[i].load(std::memory_order_relaxed) : nullptr);
    new (&grown->nodes()[i])
        HomeNode(had ? old->nodes()[i].load(std::memory_order_relaxed) : kUnknownHome);
  }
  // release: the entries.
  memory->members.store(grown, std::memory_order_release);
  return &grown->footprints()[member];
}

int admit(void* owner_of, const std::atomic<uint64_t>* footprint) {
  const auto& owner = *static_cast<MemoryOwner*>(owner_of);
  std::atomic<OnNodes>* at = owner.member == MemoryOwner::kWholeTeam
                                 ? &owner.memory->team
                                 : room_for(owner.memory, owner.member);
  if (at == nullptr) return BOSK_ENOMEM;
  // release: it is zeroed and counted.
  at->store(footprint, std::memory_order_release);
  return BOSK_OK;
}

/// An area that hints made and nobody works on is none that stands in the way: its memory was given back, or will
/// not be asked for again. False: there is none such.
bool drop_left_over(memory::AreaTable* areas, uintptr_t address) {
  memory::AreaInfo removed;
  if (areas->remove_left_over(address, &removed) != BOSK_OK) return false;
  // Who gives memory back detaches it first: it is to be free of marks then.
  memory::forget_marks_of_gone(removed);
  return true;
}

bool list_first(memory::AreaTable* areas, uintptr_t begin, size_t bytes, memory::AreaInfo* area) {
  return areas->list(begin, area, 1) == 1 && area->begin < begin + bytes;
}

int add_area(memory::AreaTable* areas, uintptr_t begin, size_t bytes) {
  if (!memory::is_mapped(begin, bytes)) return BOSK_EUNMAPPED;
  const size_t room = areas->nodes().count() * sizeof(uint64_t);
  auto* on_nodes = static_cast<uint64_t*>(calloc(1, room));
  if (on_nodes == nullptr) return BOSK_ENOMEM;
  memory::look_at_pages(areas->nodes(), begin, bytes, on_nodes);
  memory::NewArea area{begin, bytes, memory::Origin::kHinted};
  area.bytes_on = on_nodes;
  int error = areas->add(area);
  memory::AreaInfo in_the_way;
  while (error == BOSK_EOVERLAP && list_first(areas, begin, bytes, &in_the_way) &&
         drop_left_over(areas, in_the_way.begin))
    error = areas->add(area);
  free(on_nodes);
  return error;
}

/// Some of the range is in an area of others that somebody works on.
bool is_taken(memory::AreaTable* areas, uintptr_t begin, size_t bytes) {
  memory::AreaInfo area;
  return list_first(areas, begin, bytes, &area) && !area.is_left_over() &&
         (area.begin != begin || area.end < begin + bytes);
}

/// The range is in one area now. BOSK_EOVERLAP: in parts, or in several. Other members may do the same with the same range, and
/// undo it again: each further try is one of theirs that was done.
int have_area(memory::AreaTable* areas, uintptr_t begin, size_t bytes, bool* made) {
  *made = false;
  for (;;) {
    memory::AreaInfo area;
    if (areas->look_up(begin, &area)) {
      if (begin + bytes <= area.end) return BOSK_OK;
      if (!area.is_left_over()) return BOSK_EOVERLAP;
      drop_left_over(areas, begin);
    }
    const int error = add_area(areas, begin, bytes);
    *made = error == BOSK_OK;
    if (error != BOSK_EOVERLAP || is_taken(areas, begin, bytes)) return error;
  }
}

/// The team that is open there has this memory from now on. False: no memory.
bool show_at(sched::Thread* me, const NestPlace& place, TeamMemory* memory) {
  if (!give_memory(place.open, memory)) return false;
  show_to_watch(me, place.open, place.open->native_count);
  return true;
}

void note_change(const MemoryOwner& owner) {
  owner.memory->stamp.fetch_add(1, std::memory_order_release);
}

}  // namespace

memory::OwnerId MemoryOwner::id() const {
  // Handles of threads and bubbles, which are owners, too, are no multiples of four.
  static_assert(kMostWithMemory + 1 < 1 << 13);
  return memory->serial << 15 | uint64_t{member == kWholeTeam ? 0 : member + 1} << 2;
}

policies::TeamFootprints TeamMemory::footprints() const {
  policies::TeamFootprints all;
  all.team = team.load(std::memory_order_acquire);
  if (MemberMemory* array = members.load(std::memory_order_acquire)) {
    all.members = array->footprints();
    all.n_members = array->count;
  }
  return all;
}

int find_owner(const sched::Thread* me, Addressee who, MemoryOwner* owner) {
  NestPlace place;
  if (const int error = find_place(me, who, &place)) return error;
  *owner = {find_at(place), place.member};
  return BOSK_OK;
}

int find_open_team(sched::Thread* me, Team** team, TeamMemory** memory) {
  NestPlace place;
  if (const int error = find_place(me, {Whose::kCallersTeam}, &place)) return error;
  if (table() == nullptr) return BOSK_ENOMEM;
  *memory = find_or_make(me, place.group(), place.key());
  if (*memory == nullptr) return BOSK_ENOMEM;
  expect_loads(LoadsKnown::kEverywhere);
  if (!show_at(me, place, *memory)) return BOSK_ENOMEM;
  *team = place.open;
  return BOSK_OK;
}

TeamMemory* find_memory(Team* outer, uint32_t index) {
  NestPlace place;
  place.outer = outer;
  place.index = index;
  return find_at(place);
}

int attach_memory(sched::Thread* me, Addressee to, uintptr_t begin, size_t bytes, uint8_t use,
                  uint32_t times) {
  uintptr_t end;
  if (begin == 0 || bytes == 0 || __builtin_add_overflow(begin, bytes, &end) || use == 0 ||
      use > (memory::kReads | memory::kWrites))
    return BOSK_EINVAL;
  NestPlace place;
  if (const int error = find_place(me, to, &place)) return error;
  memory::AreaTable* areas = table();
  if (areas == nullptr) return BOSK_ENOMEM;
  MemoryOwner owner{find_or_make(me, place.group(), place.key()), place.member};
  if (owner.memory == nullptr) return BOSK_ENOMEM;
  const memory::OwnerId id = owner.id();
  const uint32_t before = areas->uses_of(id, nullptr, 0);
  for (;;) {
    bool made;
    if (const int error = have_area(areas, begin, bytes, &made)) return error;
    const int error = areas->attach(begin, id, use, times, admit, &owner);
    if (error == BOSK_OK) break;
    // The last who worked on it has detached it just now, and it is gone.
    if (error == BOSK_ENOAREA) continue;
    if (made) drop_left_over(areas, begin);
    return error;
  }
  expect_loads(LoadsKnown::kEverywhere);
  if (place.open != nullptr) {
    // Nobody has looked yet where its members are at home.
    const policies::TeamPlacement& homes = place.open->home_on_machine.placement;
    if (place.open->native_count == 1 && homes.members() == place.open->size && placed_by_memory())
      note_homes(areas->nodes().machine(), owner.memory, homes);
    show_at(me, place, owner.memory);
  }
  // Members that say the same in every region are not to be placed anew in every region.
  if (areas->uses_of(id, nullptr, 0) != before) note_change(owner);
  return BOSK_OK;
}

int detach_memory(sched::Thread* me, Addressee from, uintptr_t address) {
  if (address == 0) return BOSK_EINVAL;
  MemoryOwner owner;
  if (const int error = find_owner(me, from, &owner)) return error;
  memory::AreaTable* areas = memory::areas();
  memory::AreaInfo area;
  if (areas == nullptr || !areas->look_up(address, &area)) return BOSK_ENOAREA;
  if (owner.memory == nullptr) return BOSK_ENOENT;
  if (const int error = areas->detach(address, owner.id())) return error;
  note_change(owner);
  drop_left_over(areas, address);
  return BOSK_OK;
}

int detach_all_memory(sched::Thread* me, Addressee from) {
  MemoryOwner owner;
  if (const int error = find_owner(me, from, &owner)) return error;
  if (owner.memory == nullptr) return BOSK_OK;
  memory::AreaTable* areas = memory::areas();
  memory::AreaUse use;
  while (areas->uses_of(owner.id(), &use, 1) != 0) {
    areas->detach(use.area.begin, owner.id());
    drop_left_over(areas, use.area.begin);
  }
  note_change(owner);
  return BOSK_OK;
}

int memory_footprint(sched::Thread* me, Addressee of, uint64_t* bytes, uint32_t room) {
  if (bytes == nullptr || room == 0) return BOSK_EINVAL;
  MemoryOwner owner;
  if (const int error = find_owner(me, of, &owner)) return error;
  memory::AreaTable* areas = table();
  if (areas == nullptr) return BOSK_ENOMEM;
  // What next-touch has brought meanwhile counts.
  memory::refresh_coming_areas(*areas);
  const uint32_t nodes = areas->nodes().count();
  OnNodes on_nodes = nullptr;
  if (owner.memory != nullptr) {
    const policies::TeamFootprints all = owner.memory->footprints();
    on_nodes = owner.member == MemoryOwner::kWholeTeam ? all.team : all.of(owner.member);
  }
  for (uint32_t i = 0; i < room; ++i)
    bytes[i] = on_nodes != nullptr && i < nodes ? on_nodes[i].load(std::memory_order_relaxed) : 0;
  return static_cast<int>(nodes);
}

void free_memory_book(ContentionGroup* group) {
  MemoryBook* book = group->memory.exchange(nullptr, std::memory_order_relaxed);
  if (book == nullptr) return;
  unlist_book(book);
  memory::AreaTable* areas = memory::areas();
  const auto gone = [areas](OnNodes footprint) {
    if (footprint != nullptr) areas->owner_gone(footprint);
  };
  book->visit([&gone](TeamMemory* at) {
    gone(at->team.load(std::memory_order_relaxed));
    MemberMemory* array = at->members.load(std::memory_order_relaxed);
    for (uint32_t i = 0; array != nullptr && i < array->count; ++i)
      gone(array->footprints()[i].load(std::memory_order_relaxed));
    while (array != nullptr) {
      MemberMemory* outgrown = array->outgrown;
      free(array);
      array = outgrown;
    }
    free(at);
  });
  free(book);
}

}  // namespace bosk::omp
