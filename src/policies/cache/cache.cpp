// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hooks of cache.
#include "policies/cache/cache.h"

#include <new>

#include "base/mapped_array.h"
#include "base/parse.h"
#include "policies/cache/distribute.h"
#include "policies/relations.h"
#include "policies/scratch_pool.h"
#include "policies/team_by_loads.h"

namespace bosk::policies {
namespace {

using topology::Domain;
using topology::Machine;

constexpr uint64_t kMostSlackPercent = 100;

struct Cache {
  cache::Parameters parameters;
  ScratchPool<cache::Scratch> scratch;
  ScratchPool<TeamScratch<cache::Scratch>> team_scratch;
};

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
  void* memory = base::map_pages(sizeof(Cache));
  if (memory == nullptr) return error->set("no memory for the policy cache");
  auto* cache = new (memory) Cache;
  cache->parameters.machine = start.machine;
  cache->parameters.bottom = start.bottom;
  uint64_t percent;
  if (parse_slack(start.argument, &percent))
    cache->parameters.slack_percent = static_cast<uint32_t>(percent);
  *state = cache;
  return true;
}

void stop(void* state) {
  auto* cache = static_cast<Cache*>(state);
  cache->scratch.release();
  cache->team_scratch.release();
  base::unmap_pages(cache, sizeof(Cache));
}

/// What others had in use is lost with them.
void forked(void* state) {
  auto* cache = static_cast<Cache*>(state);
  new (&cache->scratch) ScratchPool<cache::Scratch>;
  new (&cache->team_scratch) ScratchPool<TeamScratch<cache::Scratch>>;
}

bool submit(void* state, const Submission& submission, PlacementList* answer) {
  auto* cache = static_cast<Cache*>(state);
  cache::Scratch* scratch = cache->scratch.take();
  if (scratch == nullptr) return false;
  const bool done = cache::distribute(cache->parameters, submission, scratch, answer);
  cache->scratch.give(scratch);
  return done;
}

Verdict found(void* state, const FoundBubble& bubble) {
  const cache::Parameters& p = static_cast<const Cache*>(state)->parameters;
  const Domain& d = p.machine->domain_array[bubble.domain];
  const bool is_bottom =
      d.is_pu() || (p.bottom != nullptr && at_or_below(*p.machine, *p.bottom, d));
  // Ghosts alone are served from here: where they are at home was said when their team was made.
  if (is_bottom || bubble.members == 0) return {Verdict::Action::kBurst, kNone, true};
  return {Verdict::Action::kDistribute, kNone};
}

void submit_team(void* state, const TeamShape& shape, TeamPlacement* answer) {
  auto* cache = static_cast<Cache*>(state);
  const cache::Parameters& p = cache->parameters;
  const Domain& scope = relations::smallest_around(*p.machine, home_of_opener(*p.machine, shape),
                                                   shape.opener_pu, shape.members);
  if (!has_equal_loads(shape)) {
    TeamScratch<cache::Scratch>* scratch = cache->team_scratch.take();
    const bool placed = scratch != nullptr &&
                        place_by_loads(
                            *p.machine, shape, scope.id, *scratch,
                            [&](const Submission& team, cache::Scratch* work, PlacementList* list) {
                              return cache::distribute(p, team, work, list);
                            },
                            answer);
    if (scratch != nullptr) cache->team_scratch.give(scratch);
    if (placed) return;
  }
  answer->set_even(*p.machine, scope.id, p.bottom, shape.opener_pu, shape.members);
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
    .stop = stop,
    .submit = submit,
    .submit_team = submit_team,
    .found = found,
    .idle = nullptr,
    .tick = nullptr,
    .hint = nullptr,
    .done = nullptr,
    .steal = rule,
    .forked = forked,
    .argument = "slack in % (25)",
};

}  // namespace bosk::policies
