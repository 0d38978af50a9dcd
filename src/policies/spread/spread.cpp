// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hooks of spread.
#include "policies/spread/spread.h"

#include <new>

#include "base/mapped_array.h"
#include "base/parse.h"
#include "policies/scratch_pool.h"
#include "policies/spread/distribute.h"
#include "policies/team_by_loads.h"

namespace bosk::policies {
namespace {

using topology::Domain;
using topology::Machine;

constexpr uint64_t kMostExplodePercent = 100'000;

struct Spread {
  spread::Parameters parameters;
  ScratchPool<spread::Scratch> scratch;
  ScratchPool<TeamScratch<spread::Scratch>> team_scratch;
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

/// What others had in use is lost with them.
void forked(void* state) {
  auto* spread = static_cast<Spread*>(state);
  new (&spread->scratch) ScratchPool<spread::Scratch>;
  new (&spread->team_scratch) ScratchPool<TeamScratch<spread::Scratch>>;
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
  // As far down as it can go, or nothing to distribute: it was placed here to be run here.
  return spread::has_way_down(p, bubble) ? Verdict{Verdict::Action::kDistribute, kNone} : Verdict{};
}

void submit_team(void* state, const TeamShape& shape, TeamPlacement* answer) {
  auto* spread = static_cast<Spread*>(state);
  const spread::Parameters& p = spread->parameters;
  const Domain& scope = home_of_opener(*p.machine, shape);
  if (!has_equal_loads(shape)) {
    TeamScratch<spread::Scratch>* scratch = spread->team_scratch.take();
    const bool placed = scratch != nullptr && place_by_loads(
                                                  *p.machine, shape, scope.id, *scratch,
                                                  [&](const Submission& team, spread::Scratch* work,
                                                      PlacementList* list) {
                                                    return spread::distribute(p, team, work, list);
                                                  },
                                                  answer);
    if (scratch != nullptr) spread->team_scratch.give(scratch);
    if (placed) return;
  }
  answer->set_even(*p.machine, scope.id, p.bottom, shape.opener_pu, shape.members);
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
    .forked = forked,
    .argument = "explode factor in % (100)",
};

}  // namespace bosk::policies
