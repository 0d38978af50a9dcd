// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hooks of burst.
#include "policies/burst/burst.h"

#include "base/mapped_array.h"

namespace bosk::policies {
namespace {

using topology::Domain;
using topology::Level;
using topology::Machine;

struct Burst {
  const Machine* machine;
  const Level* level;  ///< where bubbles burst
};

bool check(const char* argument, const Machine& machine, topology::Error* error) {
  return machine.find_level(argument, error) != nullptr;
}

bool start(const PolicyStart& start, void** state, topology::Error* error) {
  const Machine& machine = *start.machine;
  const Level* level = start.top;
  if (start.argument[0] != '\0') {
    level = machine.find_level(start.argument, error);
    if (level == nullptr) return false;
  } else if (!start.top_given) {
    level = machine.level(topology::Kind::kNode);
  }
  auto* burst = static_cast<Burst*>(base::map_pages(sizeof(Burst)));
  if (burst == nullptr) return error->set("no memory for the policy burst");
  *burst = {&machine, level};
  *state = burst;
  return true;
}

void stop(void* state) { base::unmap_pages(state, sizeof(Burst)); }

Verdict found(void* state, const FoundBubble& bubble) {
  const auto* burst = static_cast<const Burst*>(state);
  const Machine& machine = *burst->machine;
  if (at_or_below(machine, *burst->level, machine.domain_array[bubble.domain])) return {};
  return {Verdict::Action::kDescend, burst->level->of_pu[bubble.pu]};
}

void submit_team(void* state, const TeamShape& shape, TeamPlacement* answer) {
  const auto* burst = static_cast<const Burst*>(state);
  const Machine& machine = *burst->machine;
  const Domain* home = &machine.domain_array[shape.opener_domain];
  // From the opener's home down as long as the team fits and the bursting level is not reached.
  while (!home->is_pu() && home->contains_pu(shape.opener_pu) &&
         !at_or_below(machine, *burst->level, *home)) {
    const Domain& child = child_with_pu(*home, shape.opener_pu);
    if (child.n_pus() < shape.members) break;
    home = &child;
  }
  answer->set_together(machine, home->id, shape.members);
}

}  // namespace

constinit const PolicyOps kBurstPolicy = {
    .name = "burst",
    .summary =
        "bubbles go down to a level (burst:LEVEL, default node) where the first idle worker "
        "pulls them, and burst there",
    .check = check,
    .start = start,
    .stop = stop,
    .submit = nullptr,
    .submit_team = submit_team,
    .found = found,
    .idle = nullptr,
    .tick = nullptr,
    .hint = nullptr,
    .done = nullptr,
    .argument = "bursting level (node)",
};

}  // namespace bosk::policies
