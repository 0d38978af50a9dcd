// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the omp_* routines of threads, levels and ICVs do, apart from their C and Fortran faces.
#pragma once

#include <stdint.h>

#include "omp/environment.h"
#include "omp/icv.h"
#include "omp/team.h"

namespace bosk::omp {

// A pthread that never opened a region has no record: the routines that only ask answer for it
// without making one, so that they cost a load and a test.

/// The calling thread's member, or null: thread 0 of a team of one at level 0.
inline const ImplicitTask* known_member() {
  const sched::Thread* me = context::self();
  return BOSK_LIKELY(me != nullptr) ? me->member : nullptr;
}

inline int thread_num() {
  const ImplicitTask* member = known_member();
  return BOSK_LIKELY(member != nullptr) ? static_cast<int>(member->index) : 0;
}

inline int num_threads() {
  const ImplicitTask* member = known_member();
  return BOSK_LIKELY(member != nullptr) ? static_cast<int>(member->team->size) : 1;
}

inline int level() {
  const ImplicitTask* member = known_member();
  return BOSK_LIKELY(member != nullptr) ? member->team->level : 0;
}

inline int active_level() {
  const ImplicitTask* member = known_member();
  return BOSK_LIKELY(member != nullptr) ? member->team->active_level : 0;
}

/// The calling thread's ancestor at nesting level `at`: its thread number, or the size of its team.
/// -1: there is no such level.
int ancestor_thread_num(int64_t at);
int ancestor_team_size(int64_t at);

/// ICVs to read: those of the current task.
inline const DataIcvs& known_icvs() {
  const sched::Thread* me = context::self();
  const Task* task = BOSK_LIKELY(me != nullptr) ? me->task : nullptr;
  return BOSK_LIKELY(task != nullptr) ? *task->icvs : process_icvs().initial;
}

/// For a thread that asks how large its teams will be, as libraries do before they open one. Where others are here already it is
/// made known at once: until its first region it may poll for the others (sched/spins/outside.h).
void expect_regions_here();
inline void expect_regions() {
  if (BOSK_UNLIKELY(context::self() == nullptr)) expect_regions_here();
}

/// ICVs to change.
inline DataIcvs* changeable_icvs() { return own_icvs(current_task()); }

inline bool in_final_task() {
  const sched::Thread* me = context::self();
  return me != nullptr && me->task != nullptr && me->task->final_task;
}

inline bool in_explicit_task() {
  const sched::Thread* me = context::self();
  return me != nullptr && me->task != nullptr && !me->task->is_implicit;
}

/// Inside of a target region, which the host runs.
inline bool in_target() {
  const ImplicitTask* member = known_member();
  return member != nullptr && parent_team(root_team(member->team)) != nullptr;
}

/// Fortran's 8-byte integers: what does not fit into an int becomes the nearest one that does.
inline int saturated_int(int64_t value) {
  return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : static_cast<int>(value);
}

/// omp_pause_resource on the host: hard ends all threads of the runtime, soft lets them sleep. 0, or -1 if
/// it cannot be and nothing has happened: the kind is unknown, the caller is inside a region, or another
/// thread of the process is, or waits for a lock.
int pause_host(int kind);

}  // namespace bosk::omp
