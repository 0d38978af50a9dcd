// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Binding kernel threads to the OpenMP places of the members they run.
#pragma once

#include <optional>

#include "omp/places.h"
#include "omp/team.h"

namespace bosk::omp {

/// How the members of a region that is about to open will lie on the process's places; nothing: they are not bound.
std::optional<PlaceLayout> layout_of_next(const ImplicitTask* opener, uint32_t proc_bind_clause,
                                          uint32_t members);

/// Gives the team its place partition, if threads are to be bound at all (OMP_PROC_BIND, OMP_PLACES).
/// Its ICVs are there.
void inherit_places(Team* team, const ImplicitTask* opener, uint32_t proc_bind_clause);

/// Binds the calling thread to the place of the member that it runs: the kernel thread that runs it
/// now, and any that runs it after a switch. One system call when a kernel thread's place changes.
/// Preemption is on.
void bind_member(sched::Thread* me, const ImplicitTask* member);

/// The calling kernel thread goes to `me->place`, unless it is there already. Preemption is off.
void bind_to_place(sched::Thread* me);

}  // namespace bosk::omp
