// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hooks of cache.
#include "policies/cache/cache.h"

#include "base/parse.h"
#include "policies/cache/distribute.h"
#include "policies/dealing_policy.h"
#include "policies/relations.h"

namespace bosk::policies {
namespace {

using topology::Domain;
using topology::Machine;

constexpr uint64_t kMostSlackPercent = 100;

using Cache = DealingPolicy<cache::Parameters, cache::Scratch, cache::distribute>;

bool parse_slack(const char* argument, uint64_t* percent) {
  return base::parse_number(argument, 0, kMostSlackPercent, percent);
}

bool check(const char* argument, const Machine&, topology::Error* error) {
  uint64_t percent;
  return parse_slack(argument, &percent) ||
         error->set("\"%.60s\" is not a slack (0 to %lu percent of a domain's share)", argument,
                    static_cast<unsigned long>(kMostSlackPercent));
}

bool start(const PolicyStart& start, void** state, topology::Error* error) {
  if (start.argument[0] != '\0' && !check(start.argument, *start.machine, error)) return false;
  auto* cache = Cache::make(start, "cache", error);
  if (cache == nullptr) return false;
  uint64_t percent;
  if (parse_slack(start.argument, &percent))
    cache->parameters.slack_percent = static_cast<uint32_t>(percent);
  *state = cache;
  return true;
}

Verdict found(void* state, const FoundBubble& bubble) {
  const cache::Parameters& p = Cache::of(state)->parameters;
  const Domain& d = p.machine->domain_array[bubble.domain];
  const bool is_bottom =
      d.is_pu() || (p.bottom != nullptr && at_or_below(*p.machine, *p.bottom, d));
  // Ghosts alone are served from here: where they are at home was said when their team was made.
  if (is_bottom || bubble.members == 0) return {Verdict::Action::kBurst, kNone, true};
  return {Verdict::Action::kDistribute, kNone};
}

void submit_team(void* state, const TeamShape& shape, TeamPlacement* answer) {
  const Machine& machine = *Cache::of(state)->parameters.machine;
  const Domain& scope = relations::smallest_around(machine, home_of_opener(machine, shape),
                                                   shape.opener_pu, shape.members);
  Cache::of(state)->place_team(shape, scope.id, answer);
}

bool rule(void*, uint32_t, StealRule* rule) {
  *rule = {2 * kLoadUnit, false, false};
  return true;
}

}  // namespace

constinit const PolicyOps kCachePolicy = {
    .name = "cache",
    .summary =
        "teammates as close as possible and where they were before; an idle PU takes from the "
        "nearest; cache:PERCENT says how uneven a cut may be to spare a bubble (default 25)",
    .check = check,
    .start = start,
    .stop = Cache::stop,
    .submit = Cache::submit,
    .submit_team = submit_team,
    .found = found,
    .idle = nullptr,
    .tick = nullptr,
    .hint = nullptr,
    .done = nullptr,
    .steal = rule,
    .forked = Cache::forked,
    .argument = "slack in % (25)",
};

}  // namespace bosk::policies
