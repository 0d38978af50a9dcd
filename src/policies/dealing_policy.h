// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What policies have in common that deal entities out by an algorithm of their own: its memory, for several
// workers at once, and the hooks that only pass a question on to it.
#pragma once

#include <new>

#include "base/mapped_array.h"
#include "policies/policy.h"
#include "policies/scratch_pool.h"
#include "policies/team_by_loads.h"

namespace bosk::policies {

/// `kDistribute(Parameters, Submission, Scratch*, PlacementList*)`; false: out of memory. Parameters begin with
/// the machine and the level that nothing goes below.
template <class Parameters, class Scratch,
          bool (*kDistribute)(const Parameters&, const Submission&, Scratch*, PlacementList*)>
struct DealingPolicy {
  Parameters parameters;
  ScratchPool<Scratch> scratch;
  ScratchPool<TeamScratch<Scratch>> team_scratch;

  static DealingPolicy* of(void* state) { return static_cast<DealingPolicy*>(state); }

  /// The state of a policy that starts. Null: no memory, and that is said.
  static DealingPolicy* make(const PolicyStart& start, const char* name, topology::Error* error) {
    void* memory = base::map_pages(sizeof(DealingPolicy));
    if (memory == nullptr) {
      error->set("no memory for the policy %s", name);
      return nullptr;
    }
    auto* made = new (memory) DealingPolicy;
    made->parameters.machine = start.machine;
    made->parameters.bottom = start.bottom;
    return made;
  }

  static void stop(void* state) {
    of(state)->scratch.release();
    of(state)->team_scratch.release();
    base::unmap_pages(state, sizeof(DealingPolicy));
  }

  /// What others had in use is lost with them.
  static void forked(void* state) {
    new (&of(state)->scratch) ScratchPool<Scratch>;
    new (&of(state)->team_scratch) ScratchPool<TeamScratch<Scratch>>;
  }

  static bool submit(void* state, const Submission& submission, PlacementList* answer) {
    Scratch* work = of(state)->scratch.take();
    if (work == nullptr) return false;
    const bool done = kDistribute(of(state)->parameters, submission, work, answer);
    of(state)->scratch.give(work);
    return done;
  }

  /// Homes below `scope` of a team's members: by their loads, if these differ, else evenly.
  void place_team(const TeamShape& shape, uint32_t scope, TeamPlacement* answer) {
    if (!has_equal_loads(shape) && place_by_loads(shape, scope, answer)) return;
    answer->set_even(*parameters.machine, scope, parameters.bottom, shape.opener_pu, shape.members);
  }

 private:
  bool place_by_loads(const TeamShape& shape, uint32_t scope, TeamPlacement* answer) {
    TeamScratch<Scratch>* work = team_scratch.take();
    if (work == nullptr) return false;
    const bool placed = policies::place_by_loads(
        *parameters.machine, shape, scope, *work,
        [this](const Submission& team, Scratch* inner, PlacementList* list) {
          return kDistribute(parameters, team, inner, list);
        },
        answer);
    team_scratch.give(work);
    return placed;
  }
};

}  // namespace bosk::policies
