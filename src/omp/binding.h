// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Binding kernel threads to the OpenMP places of the members they run.
#pragma once

#include "omp/team.h"

namespace bosk::omp {

/// Gives the team its place partition, if threads are to be bound at all (OMP_PROC_BIND, OMP_PLACES).
void inherit_places(Team* team, const ImplicitTask* opener, uint32_t proc_bind_clause);

/// Binds the calling kernel thread to the place of the member that it runs, unless it is there already:
/// one system call when the place changes. A ghost that blocks may go on elsewhere.
void bind_member(sched::Thread* me, const ImplicitTask* member);

}  // namespace bosk::omp
