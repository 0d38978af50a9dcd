// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Makes a team the work that draw.h places.
#include "policies/memory/team.h"

#include <algorithm>

#include "policies/team_by_loads.h"

namespace bosk::policies::draw {
namespace {

constexpr uint64_t kWholeTeamPercent = 75;

void add(const Parameters& parameters, TeamFootprints::OnNodes on, uint64_t* bytes) {
  if (on == nullptr) return;
  for (uint32_t node = 0; node < parameters.inside.machine->n_nodes; ++node)
    // relaxed: figures.
    bytes[parameters.places->of_node(node)] += on[node].load(std::memory_order_relaxed);
}

/// The place with most of what the team and its members use, if that is enough; kNone: it is not.
uint32_t place_of_all(const Parameters& parameters, const TeamShape& shape, Scratch* s) {
  const uint32_t places = parameters.places->count();
  s->pull.clear();
  if (!s->pull.resize(places)) return kNone;
  add(parameters, shape.footprints->team, s->pull.data());
  for (uint32_t i = 0; i < std::min(shape.members, shape.footprints->n_members); ++i)
    add(parameters, shape.footprints->of(i), s->pull.data());
  uint64_t all = 0;
  uint32_t best = 0;
  for (uint32_t at = 0; at < places; ++at) {
    all += s->pull[at];
    if (s->pull[at] > s->pull[best]) best = at;
  }
  return all != 0 && s->pull[best] / 100 * 100 >= all / 100 * kWholeTeamPercent ? best : kNone;
}

/// A bubble, so that what the team as a whole uses counts for members that use nothing themselves.
bool make_views(const TeamShape& shape, base::MappedArray<EntityView>* views) {
  views->clear();
  if (!views->resize(1 + shape.members)) return false;
  EntityView& team = (*views)[0];
  team.kind = sched::EntityKind::kBubble;
  team.parent = team.last_domain = kNone;
  team.first_child = 1;
  team.n_children = team.pieces = team.width = shape.members;
  team.footprint = shape.footprints->team;
  for (uint32_t i = 0; i < shape.members; ++i) {
    EntityView& member = (*views)[1 + i];
    member.kind = sched::EntityKind::kThread;
    member.last_domain = member.first_child = kNone;
    member.pieces = member.width = 1;
    member.load = shape.loads != nullptr ? load_of(shape.loads[i]) : kLoadUnit;
    member.footprint = shape.footprints->of(i);
    team.load += member.load;
  }
  team.content = team.load;
  return true;
}

}  // namespace

bool place_team(const Parameters& parameters, TeamShape* shape, Scratch* s, TeamPlacement* answer) {
  const topology::Machine& machine = *parameters.inside.machine;
  const topology::Domain& scope = home_of_opener(machine, *shape);
  uint32_t first;
  uint32_t count;
  parameters.places->below(scope, &first, &count);
  if (count < 2) {
    const uint32_t best = place_of_all(parameters, *shape, s);
    if (best == kNone || best == first) return false;
    shape->opener_domain = parameters.places->domain(best);
    shape->opener_pu = machine.domain_array[shape->opener_domain].first_pu;
    return false;
  }
  base::MappedArray<EntityView> views;
  base::MappedArray<uint32_t> home;
  s->team_answer.clear();
  bool placed = make_views(*shape, &views) && home.resize(1 + shape->members);
  const Submission team{{views.data(), views.size(), 1}, scope.id, nullptr, shape->opener_pu};
  placed = placed && distribute(parameters, team, s, &s->team_answer);
  for (uint32_t i = 0; placed && i < home.size(); ++i) home[i] = kNone;
  for (uint32_t i = 0; placed && i < s->team_answer.size(); ++i)
    home[s->team_answer[i].entity] = s->team_answer[i].domain;
  if (placed) answer->set_ranges(machine, shape->members);
  for (uint32_t i = 1; placed && i < home.size(); ++i)
    placed = answer->append(1, home[i] != kNone ? home[i] : home[0]);
  views.release();
  home.release();
  return placed;
}

}  // namespace bosk::policies::draw
