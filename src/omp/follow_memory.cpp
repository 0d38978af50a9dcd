// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which memory is marked for next-touch, and when.
#include "omp/follow_memory.h"

#include <bosk/error.h>
#include <stdlib.h>

#include "base/next_touch_setting.h"
#include "locality/costs.h"
#include "locality/decider.h"
#include "memory/area_migration.h"
#include "memory/manager.h"
#include "memory/next_touch/next_touch.h"
#include "omp/loads.h"

namespace bosk::omp {
namespace {

using memory::AreaInfo;
using memory::AreaUse;

bool mark(memory::AreaTable& areas, const AreaInfo& area) {
  // What an OpenMP program attaches or registers it has agreed to: docs/next-touch.md.
  return memory::mark_area(areas, area, area.begin, area.bytes(), {}) == memory::kNextTouchOk;
}

/// Calls f(AreaUse) for all that is attached at the moment. False: no memory.
template <typename F>
bool for_each_use(memory::AreaTable* areas, memory::OwnerId owner, F&& f) {
  const uint32_t room = areas->uses_of(owner, nullptr, 0);
  if (room == 0) return true;
  auto* uses = static_cast<AreaUse*>(malloc(room * sizeof(AreaUse)));
  if (uses == nullptr) return false;
  uint32_t n = areas->uses_of(owner, uses, room);
  if (n > room) n = room;
  for (uint32_t i = 0; i < n; ++i) f(uses[i]);
  free(uses);
  return true;
}

/// A member's home is on one node, or it has none in particular.
uint32_t node_of(const topology::Machine& machine, uint32_t domain) {
  const topology::Domain& d = machine.domain_array[domain];
  const uint32_t first = machine.node_of_pu(d.first_pu);
  return first == machine.node_of_pu(d.last_pu) ? first : kUnknownHome;
}

/// relaxed throughout: a node carries nothing, and whoever swaps one for another is the one to notice.
bool note_node(HomeNode& at, uint32_t node) {
  uint32_t before = at.load(std::memory_order_relaxed);
  uint32_t now;
  do {
    const uint32_t was = before & ~kMoved;
    // Home on several nodes: the memory is as near as it was.
    if (node == kUnknownHome || node == was) return false;
    now = was == kUnknownHome ? node : node | kMoved;
  } while (!at.compare_exchange_weak(before, now, std::memory_order_relaxed));
  return (now & kMoved) != 0;
}

void follow(const MemoryOwner& owner, HomeNode& at) {
  uint32_t node = at.load(std::memory_order_relaxed);
  if ((node & kMoved) == 0 ||
      !at.compare_exchange_strong(node, node & ~kMoved, std::memory_order_relaxed))
    return;
  memory::AreaTable* areas = memory::areas();
  const uint32_t nodes = areas->nodes().count();
  const memory::CostTable* costs = locality::costs_of(areas->nodes().machine());
  auto* bytes_on = static_cast<uint64_t*>(malloc(nodes * sizeof(uint64_t)));
  memory::refresh_coming_areas(*areas);
  if (costs != nullptr && bytes_on != nullptr && costs->n_nodes == nodes)
    for_each_use(areas, owner.id(), [&](const AreaUse& use) {
      AreaInfo area;
      if (!areas->look_up(use.area.begin, &area, bytes_on) || area.serial != use.area.serial)
        return;
      if (locality::is_worth_marking(*costs, bytes_on, node & ~kMoved, use.times, use.use))
        mark(*areas, area);
    });
  free(bytes_on);
}

}  // namespace

int mark_memory(sched::Thread* me, Addressee whose) {
  MemoryOwner owner;
  if (const int error = find_owner(me, whose, &owner)) return error;
  if (owner.memory == nullptr) return 0;
  int marked = 0;
  int refused = 0;
  if (!for_each_use(memory::areas(), owner.id(), [&](const AreaUse& use) {
        ++(mark(*memory::areas(), use.area) ? marked : refused);
      }))
    return BOSK_ENOMEM;
  return marked == 0 && refused != 0 ? static_cast<int>(BOSK_ENOTSUP) : marked;
}

bool note_homes(const topology::Machine& machine, TeamMemory* memory,
                const policies::TeamPlacement& placement, uint32_t first_node) {
  bool moved = false;
  // A team that is not together has no node of its own.
  if (memory->team.load(std::memory_order_relaxed) != nullptr && !placement.is_list())
    moved = note_node(memory->node, node_of(machine, placement.scope()));
  // acquire: the entries.
  if (MemberMemory* members = memory->members.load(std::memory_order_acquire)) {
    const uint32_t n = members->count < placement.members() ? members->count : placement.members();
    for (uint32_t i = 0; i < n; ++i)
      if (members->footprints()[i].load(std::memory_order_relaxed) != nullptr)
        moved |= note_node(members->nodes()[i], i == 0 && first_node != kUnknownHome
                                                    ? first_node
                                                    : node_of(machine, placement.domain_of(i)));
  }
  return moved;
}

void follow_moved(TeamMemory* memory) {
  follow({memory, MemoryOwner::kWholeTeam}, memory->node);
  if (MemberMemory* members = memory->members.load(std::memory_order_acquire))
    for (uint32_t i = 0; i < members->count; ++i) follow({memory, i}, members->nodes()[i]);
}

void forget_moves(TeamMemory* memory) {
  memory->node.fetch_and(~kMoved, std::memory_order_relaxed);
  if (MemberMemory* members = memory->members.load(std::memory_order_acquire))
    for (uint32_t i = 0; i < members->count; ++i)
      members->nodes()[i].fetch_and(~kMoved, std::memory_order_relaxed);
}

void expect_marks() { expect_loads(LoadsKnown::kLevel1); }

void look_after_marks() {
  memory::next_touch_keep_handlers();
  if (!base::next_touch_regions()) return;
  memory::AreaTable* areas = memory::areas();
  if (areas == nullptr) return;
  constexpr uint32_t kAtOnce = 32;
  AreaInfo area[kAtOnce];
  uint32_t n;
  uintptr_t from = 0;
  do {
    n = areas->list(from, area, kAtOnce);
    if (n > kAtOnce) n = kAtOnce;
    for (uint32_t i = 0; i < n; ++i) {
      from = area[i].end;
      switch (area[i].placement) {
        case memory::Placement::kDefault:
        case memory::Placement::kFirstTouch:
        case memory::Placement::kNextTouch:
          mark(*areas, area[i]);
          break;
        default:
          break;
      }
    }
  } while (n == kAtOnce);
}

}  // namespace bosk::omp
