// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hooks of null: a team's home is all it has to say.
#include "policies/null/null.h"

namespace bosk::policies {
namespace {

bool start(const PolicyStart& start, void** state, topology::Error*) {
  *state = const_cast<topology::Machine*>(start.machine);
  return true;
}

void submit_team(void* state, const TeamShape& shape, TeamPlacement* answer) {
  answer->set_together(*static_cast<const topology::Machine*>(state), 0, shape.members);
}

}  // namespace

constinit const PolicyOps kNullPolicy = {
    .name = "null",
    .summary = "everything on one queue for the whole machine: what the others are compared with",
    .check = nullptr,
    .start = start,
    .stop = nullptr,
    .submit = nullptr,
    .submit_team = submit_team,
    .found = nullptr,
    .idle = nullptr,
    .tick = nullptr,
    .hint = nullptr,
    .done = nullptr,
    .nearest_first = false,
};

}  // namespace bosk::policies
