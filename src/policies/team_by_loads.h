// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Homes of the members of a team whose loads differ: dealt like threads, by a policy's own algorithm.
#pragma once

#include <algorithm>

#include "base/mapped_array.h"
#include "policies/policy.h"

namespace bosk::policies {

/// What a team with loads needs beside the algorithm's own memory.
template <class Work>
struct TeamScratch {
  base::MappedArray<EntityView> members;
  base::MappedArray<uint32_t> home;
  PlacementList placements;
  Work work;
  TeamScratch* next_scratch = nullptr;

  void release() {
    members.release();
    home.release();
    placements.release();
    work.release();
  }
};

inline bool has_equal_loads(const TeamShape& shape) {
  return shape.loads == nullptr ||
         std::all_of(shape.loads, shape.loads + shape.members,
                     [&](uint32_t load) { return load == shape.loads[0]; });
}

/// Below the opener's home; if the opener was stolen away from there, below a domain of that size
/// around it.
inline const topology::Domain& home_of_opener(const topology::Machine& machine,
                                              const TeamShape& shape) {
  const topology::Domain* scope = &machine.domain_array[shape.opener_domain];
  if (scope->contains_pu(shape.opener_pu)) return *scope;
  const uint8_t depth = scope->depth;
  scope = &machine.pu(shape.opener_pu);
  while (scope->depth > depth) scope = scope->parent;
  return *scope;
}

/// distribute(Submission, Work*, PlacementList*) → bool. False: out of memory.
template <class Work, class Distribute>
bool place_by_loads(const topology::Machine& machine, const TeamShape& shape, uint32_t scope,
                    TeamScratch<Work>& s, Distribute&& distribute, TeamPlacement* answer) {
  s.members.clear();
  s.placements.clear();
  if (!s.members.resize(shape.members) || !s.home.resize(shape.members)) return false;
  for (uint32_t i = 0; i < shape.members; ++i) {
    EntityView& member = s.members[i];
    member = EntityView{};
    member.parent = member.last_domain = kNone;
    member.pieces = member.width = 1;
    member.kind = sched::EntityKind::kThread;
    member.load = load_of(shape.loads[i]);
  }
  const Submission team{
      {s.members.data(), shape.members, shape.members}, scope, nullptr, shape.opener_pu};
  if (!distribute(team, &s.work, &s.placements)) return false;
  for (uint32_t i = 0; i < s.placements.size(); ++i)
    s.home[s.placements[i].entity] = s.placements[i].domain;
  answer->set_ranges(machine, shape.members);
  for (uint32_t i = 0; i < shape.members; ++i)
    if (!answer->append(1, s.home[i])) return false;
  return true;
}

}  // namespace bosk::policies
