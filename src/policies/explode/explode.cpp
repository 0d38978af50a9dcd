// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hooks of explode.
#include "policies/explode/explode.h"

#include <new>

#include "base/mapped_array.h"
#include "policies/scratch_pool.h"
#include "policies/spread/distribute.h"

namespace bosk::policies {
namespace {

struct Explode {
  spread::Parameters parameters;
  ScratchPool<spread::Scratch> scratch;
};

bool start(const PolicyStart& start, void** state, topology::Error* error) {
  void* memory = base::map_pages(sizeof(Explode));
  if (memory == nullptr) return error->set("no memory for the policy explode");
  auto* explode = new (memory) Explode;
  explode->parameters = {start.machine, start.bottom, 0};
  *state = explode;
  return true;
}

void stop(void* state) {
  auto* explode = static_cast<Explode*>(state);
  explode->scratch.release();
  base::unmap_pages(explode, sizeof(Explode));
}

/// What others had in use is lost with them.
void forked(void* state) {
  auto* explode = static_cast<Explode*>(state);
  new (&explode->scratch) ScratchPool<spread::Scratch>;
}

bool submit(void* state, const Submission& submission, PlacementList* answer) {
  auto* explode = static_cast<Explode*>(state);
  spread::Scratch* scratch = explode->scratch.take();
  if (scratch == nullptr) return false;
  const bool done = spread::distribute(explode->parameters, submission, scratch, answer);
  explode->scratch.give(scratch);
  return done;
}

Verdict found(void* state, const FoundBubble& bubble) {
  const spread::Parameters& p = static_cast<const Explode*>(state)->parameters;
  return spread::has_way_down(p, bubble) ? Verdict{Verdict::Action::kDistribute, kNone} : Verdict{};
}

void submit_team(void* state, const TeamShape& shape, TeamPlacement* answer) {
  const spread::Parameters& p = static_cast<const Explode*>(state)->parameters;
  answer->set_even(*p.machine, 0, p.bottom, shape.opener_pu, shape.members);
}

}  // namespace

constinit const PolicyOps kExplodePolicy = {
    .name = "explode",
    .summary = "every bubble bursts at once and its threads are spread over the machine by load",
    .check = nullptr,
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
};

}  // namespace bosk::policies
