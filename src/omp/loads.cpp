// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keeps what is known of loads, and what follows for the order of ghosts and the size of teams.
#include "omp/loads.h"

#include <stdlib.h>

#include <algorithm>
#include <new>

#include "base/settings.h"
#include "context/floats_kept.h"
#include "omp/load_meter.h"
#include "omp/place_book.h"
#include "omp/report.h"
#include "omp/team.h"
#include "sched/worker.h"

namespace bosk::omp {

namespace detail {
constinit std::atomic<LoadsKnown> loads_known{LoadsKnown::kNowhere};
}

/// Of one contention group.
struct LoadBook : PlaceBook<TeamLoads> {
  /// Programs whose teams have ever new sizes would fill the memory: what is told beyond is lost. In
  /// members, of which each takes 28 bytes, a team counting as some more: 15 MB.
  static constexpr uint32_t kMost = 1 << 19;
  static constexpr uint32_t kTeam = 8;
  std::atomic<uint32_t> members{0};
};

namespace {

uint64_t mix(uint64_t hash, uint32_t a, uint32_t b) {
  hash = (hash ^ (uint64_t{a} << 32 | b)) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

void free_one(TeamLoads* loads) {
  loads->homes.release();
  free(loads->meter);
  free(loads);
}

TeamLoads* make(uint64_t key, uint32_t level, uint32_t size) {
  static constinit std::atomic<uint64_t> serial{0};
  using Load = std::atomic<uint32_t>;
  void* memory = malloc(sizeof(TeamLoads) + size * (2 * sizeof(Load) + sizeof(uint32_t)));
  if (memory == nullptr) return nullptr;
  auto* loads = new (memory) TeamLoads;
  loads->key = key;
  loads->size = size;
  loads->load = reinterpret_cast<Load*>(loads + 1);
  loads->measured = loads->load + size;
  loads->scratch = reinterpret_cast<uint32_t*>(loads->measured + size);
  const base::LoadList& given = base::settings().loads;
  for (uint32_t i = 0; i < size; ++i) {
    new (&loads->load[i]) Load(given.load_of(level, i));
    new (&loads->measured[i]) Load(kNoLoad);
  }
  loads->told.store(given.mentions(level), std::memory_order_relaxed);
  loads->level = level;
  if (level == 1 && !given.mentions(level)) loads->meter = make_load_meter(size);
  loads->stamp.store((serial.fetch_add(1, std::memory_order_relaxed) + 1) << 32,
                     std::memory_order_relaxed);
  return loads;
}

/// Null: no memory for it.
TeamLoads* find_or_make(ContentionGroup* group, uint64_t key, uint32_t level, uint32_t size) {
  bool made;
  LoadBook* book = book_in(group->loads, &made);
  if (book == nullptr) return nullptr;
  const auto is = [size](const TeamLoads& loads) { return loads.size == size; };
  const auto make_one = [&]() -> TeamLoads* {
    if (book->members.load(std::memory_order_relaxed) >= LoadBook::kMost) return nullptr;
    return make(key, level, size);
  };
  bool added;
  TeamLoads* loads = book->find_or_add(key, is, make_one, free_one, &added);
  if (added) book->members.fetch_add(size + LoadBook::kTeam, std::memory_order_relaxed);
  return loads;
}

/// What part of its opener's share of the machine a member may have; false: nobody knows.
bool part_of_member(const Team* team, uint32_t index, double* part) {
  const TeamLoads* loads = team->loads.load(std::memory_order_acquire);
  if (loads == nullptr) return false;
  uint64_t told = 0;
  uint32_t tellers = 0;
  for (uint32_t i = 0; i < loads->size; ++i) {
    const uint32_t load = loads->of(i).load(std::memory_order_relaxed);
    if (load == kNoLoad) continue;
    told += load;
    ++tellers;
  }
  if (tellers == 0) return false;
  const uint32_t mine = loads->of(index).load(std::memory_order_relaxed);
  const double mean = static_cast<double>(told) / tellers;
  *part = (mine == kNoLoad ? mean : mine) / (mean * loads->size);
  return true;
}

/// Of a team whose region runs; null: no memory.
TeamLoads* loads_of_open(Team* team) {
  TeamLoads* loads = team->loads.load(std::memory_order_acquire);
  if (loads != nullptr) return loads;
  Team* outer = parent_team(team);
  loads = find_or_make(&root_team(outer)->contention,
                       place_key(outer, team->opener_index, team->size), team->level, team->size);
  if (loads == nullptr) return nullptr;
  // release: whoever finds it here reads it. All members store the same.
  team->loads.store(loads, std::memory_order_release);
  expect_loads(LoadsKnown::kEverywhere);
  return loads;
}

}  // namespace

// Two places with the same key would share their loads: a wrong hint, if it ever happens.
uint64_t place_key(const Team* outer, uint32_t index, uint32_t size) {
  uint64_t key = mix(0, size, index);
  for (const Team* team = outer; team->level != 0; team = parent_team(team))
    key = mix(key, team->size, team->opener_index);
  return key;
}

void expect_loads(LoadsKnown where) {
  LoadsKnown seen = loads_known();
  while (seen < where &&
         !detail::loads_known.compare_exchange_weak(seen, where, std::memory_order_relaxed)) {
  }
}

TeamLoads* find_loads(Team* outer, uint32_t index, uint32_t size) {
  if (size == 1 || size > kMostWithLoads) return nullptr;
  const uint64_t key = place_key(outer, index, size);
  ContentionGroup& group = root_team(outer)->contention;
  const uint32_t level = outer->level + 1u;
  TeamMemory* memory = BOSK_UNLIKELY(group.memory.load(std::memory_order_relaxed) != nullptr)
                           ? find_memory(outer, index)
                           : nullptr;
  const ToldRelation* relation = find_relation(outer, index);
  if (memory != nullptr || relation != nullptr || base::settings().loads.mentions(level) ||
      base::settings().relations.of_level(level) != 0 || (level == 1 && measures_loads())) {
    TeamLoads* loads = find_or_make(&group, key, level, size);
    // release: with the footprints. All who come here store the same.
    if (loads != nullptr && memory != nullptr)
      loads->memory.store(memory, std::memory_order_release);
    if (loads != nullptr && relation != nullptr)
      loads->relation.store(relation, std::memory_order_release);
    return loads;
  }
  LoadBook* book = group.loads.load(std::memory_order_acquire);
  if (book == nullptr) return nullptr;
  return book->find(key, [size](const TeamLoads& loads) { return loads.size == size; });
}

bool read_loads(const TeamLoads& loads, uint32_t* to) {
  uint64_t told = 0;
  uint32_t tellers = 0;
  for (uint32_t i = 0; i < loads.size; ++i) {
    to[i] = loads.of(i).load(std::memory_order_relaxed);
    if (to[i] == kNoLoad) continue;
    told += to[i];
    ++tellers;
  }
  if (tellers == 0) return false;
  const uint64_t mean = (told + tellers - 1) / tellers;
  std::replace(to, to + loads.size, kNoLoad, static_cast<uint32_t>(mean));
  return true;
}

bool give_memory(Team* team, TeamMemory* memory) {
  if (team->size > kMostWithLoads) return false;
  TeamLoads* loads = loads_of_open(team);
  if (loads == nullptr) return false;
  loads->memory.store(memory, std::memory_order_release);
  return true;
}

LoadTold tell_load(sched::Thread* me, uint32_t load) {
  Team* team = me->member->team;
  uint32_t index = me->member->index;
  while (team->size == 1 && team->level != 0) {
    index = team->opener_index;
    team = parent_team(team);
  }
  if (team->size == 1) return LoadTold::kKept;
  if (team->size > kMostWithLoads) return LoadTold::kNoMemory;
  TeamLoads* loads = loads_of_open(team);
  if (loads == nullptr) return LoadTold::kNoMemory;
  if (BOSK_UNLIKELY(counting())) note_load(team->level, index, load);
  const bool first = !loads->told.exchange(true, std::memory_order_relaxed);
  if (loads->load[index].exchange(load, std::memory_order_relaxed) != load || first)
    loads->stamp.fetch_add(1, std::memory_order_release);
  return LoadTold::kKept;
}

uint32_t team_size_by_load(const sched::Thread* me, uint32_t wanted) {
  const context::FloatsKept kept;
  const bool always = base::settings().team_size_by_load;
  double processors = me->pool->worker_limit;
  bool known = always;
  const Team* team = me->member->team;
  uint32_t index = me->member->index;
  for (; team->level != 0; index = team->opener_index, team = parent_team(team)) {
    double part;
    if (part_of_member(team, index, &part)) {
      known = true;
    } else {
      part = 1.0 / team->size;
    }
    processors *= part;
  }
  if (!known) return wanted;
  const uint32_t due = processors < 1.5 ? 1 : static_cast<uint32_t>(2 * processors + 1) / 2;
  return due < wanted ? due : wanted;
}

void order_ghosts(Team* team, uint32_t first) {
  team->order = nullptr;
  const TeamLoads* loads = team->loads.load(std::memory_order_relaxed);
  if (loads == nullptr) return;
  GhostOrder& order = team->ghost_order;
  const uint64_t stamp = stamp_of(loads);
  if (order.stamp != stamp || order.first != first) {
    if (order.capacity < team->size) {
      free(order.memory);
      order.memory = static_cast<uint32_t*>(malloc(2 * team->size * sizeof(uint32_t)));
      order.capacity = order.memory != nullptr ? team->size : 0;
      if (order.memory == nullptr) return;
    }
    uint32_t* at = order.memory;
    uint32_t* load = at + order.capacity;
    order.first = first;
    order.stamp = stamp;
    order.differs = read_loads(*loads, load) &&
                    std::adjacent_find(load + first, load + team->size, [](uint32_t a, uint32_t b) {
                      return a < b;
                    }) != load + team->size;
    for (uint32_t i = 0; i < team->size; ++i) at[i] = i;
    if (order.differs)
      std::sort(at + first, at + team->size, [load](uint32_t a, uint32_t b) {
        return load[a] != load[b] ? load[a] > load[b] : a < b;
      });
  }
  if (!order.differs) return;
  team->order = order.memory;
  // The first ones are the heaviest: nobody takes several at a time.
  team->share_shift = 0;
}

void free_loads(Team* team) {
  free(team->ghost_order.memory);
  team->ghost_order = {};
  team->home_on_machine.placement.release();
  team->home_on_machine.outer.release();
  free_memory_book(&team->contention);
  free_relation_book(&team->contention);
  LoadBook* book = team->contention.loads.exchange(nullptr, std::memory_order_relaxed);
  if (book == nullptr) return;
  book->visit(free_one);
  free(book);
}

}  // namespace bosk::omp
