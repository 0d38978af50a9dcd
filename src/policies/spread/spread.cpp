// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hooks of spread.
#include "policies/spread/spread.h"

#include <algorithm>
#include <new>

#include "base/mapped_array.h"
#include "base/parse.h"
#include "policies/scratch_pool.h"
#include "policies/spread/distribute.h"

namespace bosk::policies {
namespace {

using topology::Domain;
using topology::Machine;

constexpr uint64_t kMostExplodePercent = 100'000;

/// What a team with loads needs beside the algorithm's own memory.
struct TeamScratch {
  base::MappedArray<EntityView> members;
  base::MappedArray<uint32_t> home;
  PlacementList placements;
  spread::Scratch work;
  TeamScratch* next_scratch = nullptr;

  void release() {
    members.release();
    home.release();
    placements.release();
    work.release();
  }
};

struct Spread {
  spread::Parameters parameters;
  ScratchPool<spread::Scratch> scratch;
  ScratchPool<TeamScratch> team_scratch;
};

bool parse_factor(const char* argument, uint64_t* percent) {
  return base::parse_number(argument, 1, kMostExplodePercent, percent);
}

bool check(const char* argument, const Machine&, topology::Error* error) {
  uint64_t percent;
  return parse_factor(argument, &percent) ||
         error->set("\"%.60s\" is not an explode factor (1 to %lu percent of the fair share)",
                    argument, static_cast<unsigned long>(kMostExplodePercent));
}

bool start(const PolicyStart& start, void** state, topology::Error* error) {
  if (start.argument[0] != '\0' && !check(start.argument, *start.machine, error)) return false;
  void* memory = base::map_pages(sizeof(Spread));
  if (memory == nullptr) return error->set("no memory for the policy spread");
  auto* spread = new (memory) Spread;
  spread->parameters.machine = start.machine;
  spread->parameters.bottom = start.bottom;
  uint64_t percent;
  if (parse_factor(start.argument, &percent))
    spread->parameters.explode_percent = static_cast<uint32_t>(percent);
  *state = spread;
  return true;
}

void stop(void* state) {
  auto* spread = static_cast<Spread*>(state);
  spread->scratch.release();
  spread->team_scratch.release();
  base::unmap_pages(spread, sizeof(Spread));
}

bool submit(void* state, const Submission& submission, PlacementList* answer) {
  auto* spread = static_cast<Spread*>(state);
  spread::Scratch* scratch = spread->scratch.take();
  if (scratch == nullptr) return false;
  const bool done = spread::distribute(spread->parameters, submission, scratch, answer);
  spread->scratch.give(scratch);
  return done;
}

Verdict found(void* state, const FoundBubble& bubble) {
  const spread::Parameters& p = static_cast<const Spread*>(state)->parameters;
  const Domain& d = p.machine->domain_array[bubble.domain];
  // As far down as it can go, or nothing to distribute: it was placed here to be run here.
  const bool is_bottom =
      d.is_pu() || (p.bottom != nullptr && at_or_below(*p.machine, *p.bottom, d));
  // Ghosts alone are served from here: where they are at home was said when their team was made.
  if (is_bottom || bubble.members == 0 || bubble.members + bubble.ghosts == 1) return {};
  return {Verdict::Action::kDistribute, kNone};
}

bool place_by_loads(Spread& spread, const TeamShape& shape, const Domain& scope, TeamScratch& s,
                    TeamPlacement* answer) {
  s.members.clear();
  s.placements.clear();
  if (!s.members.resize(shape.members) || !s.home.resize(shape.members)) return false;
  for (uint32_t i = 0; i < shape.members; ++i) {
    EntityView& member = s.members[i];
    member = EntityView{};
    member.parent = member.last_domain = kNone;
    member.pieces = 1;
    member.kind = sched::EntityKind::kThread;
    member.load = load_of(shape.loads[i]);
  }
  const Submission team{{s.members.data(), shape.members, shape.members}, scope.id, nullptr};
  if (!spread::distribute(spread.parameters, team, &s.work, &s.placements)) return false;
  for (uint32_t i = 0; i < s.placements.size(); ++i)
    s.home[s.placements[i].entity] = s.placements[i].domain;
  answer->set_ranges(*spread.parameters.machine, shape.members);
  for (uint32_t i = 0; i < shape.members; ++i)
    if (!answer->append(1, s.home[i])) return false;
  return true;
}

void submit_team(void* state, const TeamShape& shape, TeamPlacement* answer) {
  auto* spread = static_cast<Spread*>(state);
  const spread::Parameters& p = spread->parameters;
  // Below the opener's home; if the opener was stolen, below a domain of that size around it.
  const Domain* scope = &p.machine->domain_array[shape.opener_domain];
  if (!scope->contains_pu(shape.opener_pu)) {
    const uint8_t depth = scope->depth;
    scope = &p.machine->pu(shape.opener_pu);
    while (scope->depth > depth) scope = scope->parent;
  }
  const bool equal =
      shape.loads == nullptr || std::all_of(shape.loads, shape.loads + shape.members,
                                            [&](uint32_t load) { return load == shape.loads[0]; });
  if (!equal) {
    TeamScratch* scratch = spread->team_scratch.take();
    const bool placed =
        scratch != nullptr && place_by_loads(*spread, shape, *scope, *scratch, answer);
    if (scratch != nullptr) spread->team_scratch.give(scratch);
    if (placed) return;
  }
  answer->set_even(*p.machine, scope->id, p.bottom, shape.opener_pu, shape.members);
}

}  // namespace

constinit const PolicyOps kSpreadPolicy = {
    .name = "spread",
    .summary =
        "deals bubbles and threads out over each level by load; spread:PERCENT says how large "
        "a bubble may be beside the fair share before it explodes (default 100)",
    .check = check,
    .start = start,
    .stop = stop,
    .submit = submit,
    .submit_team = submit_team,
    .found = found,
    .idle = nullptr,
    .tick = nullptr,
    .hint = nullptr,
    .done = nullptr,
};

}  // namespace bosk::policies
