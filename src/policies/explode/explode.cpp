// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hooks of explode.
#include "policies/explode/explode.h"

#include "policies/dealing_policy.h"
#include "policies/spread/distribute.h"

namespace bosk::policies {
namespace {

using Explode = DealingPolicy<spread::Parameters, spread::Scratch, spread::distribute>;

bool start(const PolicyStart& start, void** state, topology::Error* error) {
  auto* explode = Explode::make(start, "explode", error);
  if (explode == nullptr) return false;
  explode->parameters.explode_percent = 0;
  *state = explode;
  return true;
}

Verdict found(void* state, const FoundBubble& bubble) {
  const spread::Parameters& p = Explode::of(state)->parameters;
  return spread::has_way_down(p, bubble) ? Verdict{Verdict::Action::kDistribute, kNone} : Verdict{};
}

void submit_team(void* state, const TeamShape& shape, TeamPlacement* answer) {
  const spread::Parameters& p = Explode::of(state)->parameters;
  answer->set_even(*p.machine, 0, p.bottom, shape.opener_pu, shape.members);
}

}  // namespace

constinit const PolicyOps kExplodePolicy = {
    .name = "explode",
    .summary = "every bubble bursts at once and its threads are spread over the machine by load",
    .check = nullptr,
    .start = start,
    .stop = Explode::stop,
    .submit = Explode::submit,
    .submit_team = submit_team,
    .found = found,
    .idle = nullptr,
    .tick = nullptr,
    .hint = nullptr,
    .done = nullptr,
    .forked = Explode::forked,
};

}  // namespace bosk::policies
