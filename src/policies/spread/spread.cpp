// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hooks of spread.
#include "policies/spread/spread.h"

#include "base/parse.h"
#include "policies/dealing_policy.h"
#include "policies/spread/distribute.h"

namespace bosk::policies {
namespace {

using topology::Machine;

constexpr uint64_t kMostExplodePercent = 100'000;

using Spread = DealingPolicy<spread::Parameters, spread::Scratch, spread::distribute>;

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
  auto* spread = Spread::make(start, "spread", error);
  if (spread == nullptr) return false;
  uint64_t percent;
  if (parse_factor(start.argument, &percent))
    spread->parameters.explode_percent = static_cast<uint32_t>(percent);
  *state = spread;
  return true;
}

Verdict found(void* state, const FoundBubble& bubble) {
  const spread::Parameters& p = Spread::of(state)->parameters;
  // As far down as it can go, or nothing to distribute: it was placed here to be run here.
  if (!spread::has_way_down(p, bubble)) return {};
  // Where all there is to do on its way is so much that it would not be taken apart, nobody need deal it out.
  const topology::Domain& to = spread::way_down(p, bubble);
  if (spread::is_bottom(p, to)) return {Verdict::Action::kBurst, to.id};
  return to.id != bubble.domain ? Verdict{Verdict::Action::kDescend, to.id}
                                : Verdict{Verdict::Action::kDistribute, kNone};
}

void submit_team(void* state, const TeamShape& shape, TeamPlacement* answer) {
  Spread* spread = Spread::of(state);
  spread->place_team(shape, home_of_opener(*spread->parameters.machine, shape).id, answer);
}

}  // namespace

constinit const PolicyOps kSpreadPolicy = {
    .name = "spread",
    .summary =
        "deals bubbles and threads out over each level by load; spread:PERCENT says how large "
        "a bubble may be beside the fair share before it explodes (default 100)",
    .check = check,
    .start = start,
    .stop = Spread::stop,
    .submit = Spread::submit,
    .submit_team = submit_team,
    .found = found,
    .idle = nullptr,
    .tick = nullptr,
    .hint = nullptr,
    .done = nullptr,
    .forked = Spread::forked,
    .argument = "explode factor in % (100)",
    .lends = true,
};

}  // namespace bosk::policies
