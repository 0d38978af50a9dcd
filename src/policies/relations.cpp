// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Seats of related bubbles, and what happens there.
#include "policies/relations.h"

#include <algorithm>

namespace bosk::policies::relations {

using sched::Relation;
using topology::Domain;
using topology::Machine;

namespace {

/// PUs of the largest node.
uint32_t node_width(const Machine& machine) {
  const topology::Level& nodes = *machine.level(topology::Kind::kNode);
  uint32_t widest = 0;
  for (uint32_t i = 0; i < nodes.n_domains; ++i)
    widest = std::max(widest, machine.domain_array[nodes.domains[i]].n_pus());
  return widest;
}

/// Deals positions on the PUs of a domain out, in order: the first gets the first PU.
class Positions {
 public:
  Positions(const Machine& machine, const Domain& d, uint32_t pieces)
      : machine_(machine), d_(d), pieces_(std::max(pieces, 1u)) {}

  /// Where something goes that `width` PUs can work on at once.
  uint32_t next(uint32_t width) {
    const uint64_t position =
        std::min<uint64_t>(uint64_t{at_} * d_.n_pus() / pieces_, d_.n_pus() - 1);
    at_ += width;
    return smallest_around(machine_, d_, d_.first_pu + static_cast<uint32_t>(position), width).id;
  }

 private:
  const Machine& machine_;
  const Domain& d_;
  uint32_t pieces_;
  uint32_t at_ = 0;
};

bool bound_by_memory(const EntityView* member, uint32_t i, uint32_t n) {
  if (member[i].demand == sched::Demand::kUnknown) return i < (n + 1) / 2;
  return member[i].demand == sched::Demand::kMemory;
}

/// The two kinds in turn, as evenly as their numbers allow: of k of n members that were placed, k·m/n
/// rounded are bound by memory.
bool lay_out_mixed(const EntityView* member, uint32_t first, uint32_t n, Positions* positions,
                   PlacementList* answer) {
  uint32_t memory_bound = 0;
  for (uint32_t i = 0; i < n; ++i) memory_bound += bound_by_memory(member, i, n);
  uint32_t next[2] = {0, 0};  // where to look for the next of each kind
  uint32_t placed = 0;        // of those bound by memory
  for (uint32_t k = 0; k < n; ++k) {
    const uint64_t due = (uint64_t{k + 1} * memory_bound + n - 1) / n;
    const bool kind = placed < due;
    uint32_t& i = next[kind];
    while (bound_by_memory(member, i, n) != kind) ++i;
    if (!answer->add({first + i, 0, 0, positions->next(member[i].width)})) return false;
    placed += kind;
    ++i;
  }
  return true;
}

}  // namespace

bool keeps_whole(const Machine& machine, const EntityView& entity) {
  switch (entity.relation) {
    case Relation::kNone:
      return false;
    case Relation::kDataSharing:
      return entity.width <= node_width(machine);
    default:
      return true;
  }
}

bool may_hold(const Machine& machine, const EntityView& entity, const Domain& d) {
  if (entity.relation == Relation::kSmtSymbiosis) {
    const topology::Level& cores = *machine.level(topology::Kind::kCore);
    return d.depth <= machine.domain_array[cores.of_pu[d.first_pu]].depth;
  }
  return d.n_pus() >= entity.width;
}

bool sits(const Machine& machine, const EntityView& entity, const Domain& d) {
  return std::none_of(d.children().begin(), d.children().end(),
                      [&](const Domain& child) { return may_hold(machine, entity, child); });
}

const Domain& seat_on_way(const Machine& machine, const EntityView& entity, const Domain& d,
                          uint32_t pu) {
  const Domain* at = &d;
  while (!at->is_pu()) {
    const Domain& child = child_with_pu(*at, pu);
    if (!may_hold(machine, entity, child)) break;
    at = &child;
  }
  return *at;
}

uint32_t seat_from(const Machine& machine, const EntityView& entity, uint32_t domain, uint32_t pu) {
  if (entity.relation == Relation::kSequence || !keeps_whole(machine, entity)) return domain;
  const Domain* at = &machine.domain_array[domain];
  while (at->parent != nullptr && !may_hold(machine, entity, *at)) at = at->parent;
  return at->contains_pu(pu) ? at->id : domain;
}

const Domain& smallest_around(const Machine& machine, const Domain& scope, uint32_t pu,
                              uint32_t width) {
  const Domain* at = &machine.pu(pu);
  while (at->depth > scope.depth && at->n_pus() < width) at = at->parent;
  return *at;
}

bool lay_out(const Machine& machine, const WorkView& work, uint32_t domain, PlacementList* answer) {
  const EntityView& root = work.entities[0];
  const Domain& d = machine.domain_array[domain];
  const EntityView* member = work.entities + root.first_child;  // not read if there are none
  const uint32_t n = root.n_children;
  if (root.ghosts != 0 && !answer->add({0, 0, root.ghosts, domain})) return false;
  if (root.relation == Relation::kDataSharing) {
    for (uint32_t i = 0; i < n; ++i)
      if (!answer->add({root.first_child + i, 0, 0, domain})) return false;
    return true;
  }
  uint32_t pieces = 0;
  for (uint32_t i = 0; i < n; ++i) pieces += member[i].width;
  Positions positions(machine, d, pieces);
  if (root.relation == Relation::kMemoryBesideCompute)
    return lay_out_mixed(member, root.first_child, n, &positions, answer);
  for (uint32_t i = 0; i < n; ++i)
    if (!answer->add({root.first_child + i, 0, 0, positions.next(member[i].width)})) return false;
  return true;
}

namespace {

/// As lay_out_mixed(), member by member: where the one with number `i` comes of n, of whom the first `memory_bound` are.
uint64_t mixed_position(uint32_t i, uint32_t n, uint32_t memory_bound) {
  if (i < memory_bound) return uint64_t{i} * n / memory_bound;
  const uint64_t computing = n - memory_bound;
  return ((uint64_t{i} - memory_bound + 1) * n + computing - 1) / computing - 1;
}

bool place_mixed(const Machine& machine, const Domain& seat, uint32_t n, TeamPlacement* answer) {
  answer->set_ranges(machine, n);
  bool done = true;
  for (uint32_t i = 0; done && i < n; ++i) {
    const uint64_t position = mixed_position(i, n, (n + 1) / 2) * seat.n_pus() / n;
    done = answer->append(1, machine.pu(seat.first_pu + static_cast<uint32_t>(position)).id);
  }
  return done;
}

}  // namespace

uint32_t place_team(const Machine& machine, Relation relation, const TeamShape& shape,
                    TeamPlacement* answer) {
  EntityView team{};
  team.relation = relation;
  team.width = shape.members;
  if (!keeps_whole(machine, team)) return kNone;
  const Domain& home = machine.domain_array[shape.opener_domain];
  const uint32_t pu = home.contains_pu(shape.opener_pu) ? shape.opener_pu : home.first_pu;
  const Domain& seat = seat_on_way(machine, team, machine.root(), pu);
  switch (relation) {
    case Relation::kGang:
      answer->set_together(machine, seat.id, shape.members);
      answer->set_gang(1);
      return seat.id;
    case Relation::kDataSharing:
      answer->set_together(machine, seat.id, shape.members);
      return seat.id;
    case Relation::kMemoryBesideCompute:
      if (place_mixed(machine, seat, shape.members, answer)) return seat.id;
      [[fallthrough]];
    default:
      answer->set_even(machine, seat.id, nullptr, pu, shape.members);
      return seat.id;
  }
}

}  // namespace bosk::policies::relations
