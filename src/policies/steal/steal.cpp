// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hooks of steal; who is a victim, and how it is done, is the engine's part (engine_steal.cpp).
#include "policies/steal/steal.h"

#include "base/mapped_array.h"
#include "base/parse.h"

namespace bosk::policies {
namespace {

using topology::Domain;
using topology::Machine;

constexpr uint64_t kMostEnough = 1'000'000;
constexpr uint64_t kDefaultEnough = 2;

struct Steal {
  const Machine* machine;
  const topology::Level* bottom;
  uint64_t enough;
};

bool check(const char* argument, const Machine&, topology::Error* error) {
  uint64_t enough;
  return base::parse_number(argument, 1, kMostEnough, &enough) ||
         error->set("\"%.60s\" is not the work that makes a bubble worth stealing (1 to %lu)",
                    argument, static_cast<unsigned long>(kMostEnough));
}

bool start(const PolicyStart& start, void** state, topology::Error* error) {
  uint64_t enough = kDefaultEnough;
  if (start.argument[0] != '\0' && !base::parse_number(start.argument, 1, kMostEnough, &enough))
    return check(start.argument, *start.machine, error);
  auto* steal = static_cast<Steal*>(base::map_pages(sizeof(Steal)));
  if (steal == nullptr) return error->set("no memory for the policy steal");
  *steal = {start.machine, start.bottom, enough * kLoadUnit};
  *state = steal;
  return true;
}

void stop(void* state) { base::unmap_pages(state, sizeof(Steal)); }

/// The finder's PU, or its domain of the next policy's level.
const Domain& own_domain(const Steal& steal, uint32_t pu) {
  return steal.bottom != nullptr ? steal.machine->domain_array[steal.bottom->of_pu[pu]]
                                 : steal.machine->pu(pu);
}

Verdict found(void* state, const FoundBubble& bubble) {
  const auto* steal = static_cast<const Steal*>(state);
  const Domain& own = own_domain(*steal, bubble.pu);
  if (own.depth <= steal->machine->domain_array[bubble.domain].depth)
    return {Verdict::Action::kBurst, kNone, true};
  return {Verdict::Action::kDescend, own.id};
}

void submit_team(void* state, const TeamShape& shape, TeamPlacement* answer) {
  const auto* steal = static_cast<const Steal*>(state);
  // Even over one PU: at home there, and nobody is kept from taking them.
  answer->set_even(*steal->machine, own_domain(*steal, shape.opener_pu).id, steal->bottom,
                   shape.opener_pu, shape.members);
}

bool rule(void* state, uint32_t, StealRule* rule) {
  *rule = {static_cast<const Steal*>(state)->enough, true, true};
  return true;
}

}  // namespace

constinit const PolicyOps kStealPolicy = {
    .name = "steal",
    .summary =
        "bubbles stay where they are woken; an idle PU takes the nearest one with enough work "
        "(steal:N members, default 2), else a thread",
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
    .steal = rule,
    .argument = "enough work (2)",
    .lends = true,
};

}  // namespace bosk::policies
