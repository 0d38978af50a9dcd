// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ordered regions: chunks take turns in the order in which they were numbered.
//
// The turn is passed from chunk to chunk, by a member that has finished its chunk, whether or not
// it met an ordered region in it. A member has one chunk at a time and takes the next only when
// it has passed the turn on; so at most `size` chunk numbers are out, all within `size` of the one
// whose turn it is, and a ring of at least `size` words gives each its own: the passing member wakes
// exactly the one that is next.
#pragma once

#include "omp/team.h"
#include "omp/workshare.h"

namespace bosk::omp {

/// Makes `share` ordered: chunk 0 has the turn. By the builder.
void ordered_prepare(WorkShare& share);

/// Begin and end of an ordered region.
void ordered_enter(ImplicitTask* member);
void ordered_leave(ImplicitTask* member);

/// The member has finished its chunk: waits for its turn, if that has not come, and passes it on.
void ordered_pass(ImplicitTask* member, WorkShare& share);

}  // namespace bosk::omp
