// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cancellation.
#include "omp/cancel.h"

#include "omp/environment.h"
#include "omp/loop.h"
#include "omp/taskgroup.h"
#include "omp/workshare_chain.h"
#include "sched/address_wait.h"

namespace bosk::omp {
namespace {

/// Names the worksharing construct that the member is in, for cancellation: the number of barriers that
/// its team has passed, plus one. The same for all members of a construct and another for the next one
/// that can be cancelled, since each ends with a barrier of all, if only with a plain one. (It must work
/// for loops that the compiler schedules itself, which have no object.)
uint64_t phase_of(const ImplicitTask* member) { return member->barriers + 1; }

void cancel_workshare(ImplicitTask* member) {
  Team* team = member->team;
  mark_used(team);
  // release: members that leave see what the cancelling one did before.
  team->workshares.cancelled_phase.store(phase_of(member), std::memory_order_release);
}

bool workshare_cancelled(const ImplicitTask* member) {
  return member->team->workshares.cancelled_phase.load(std::memory_order_acquire) ==
         phase_of(member);
}

void cancel_region(Team* team) {
  mark_used(team);
  // release pairs with parallel_cancelled().
  team->cancel_bits.fetch_or(kCancelParallel, std::memory_order_release);
  cancel_parallel(team);
  // Those who wait for their turn in a loop: the members before them may have left.
  team->workshares.events.fetch_add(1, std::memory_order_seq_cst);
  sched::wake_after_rmw(team->workshares.events, UINT32_MAX);
}

/// The member leaves a cancelled region from wherever it is. What it had of a loop must not be there
/// when its record serves the next member.
bool leave_region(ImplicitTask* member) {
  member->loop_state[kMore] = kMoreNothing;
  member->loop_state[kHolding] = kHoldingNothing;
  return true;
}

/// Outside of all regions there is nobody to tell, and nothing that later constructs should see.
bool is_initial(const Team* team) { return team->level == 0; }

}  // namespace

bool cancel(uint32_t kind) {
  if (!process_icvs().cancellation) return false;
  ImplicitTask* member = current_member();
  if ((kind & kCancelTaskgroup) != 0) {
    cancel_taskgroup(current_task());
  } else if (!is_initial(member->team)) {
    if ((kind & kCancelParallel) != 0) {
      cancel_region(member->team);
      return leave_region(member);
    }
    cancel_workshare(member);
  }
  return true;
}

bool cancellation_point(uint32_t kind) {
  if (!process_icvs().cancellation) return false;
  ImplicitTask* member = current_member();
  if ((kind & (kCancelLoop | kCancelSections)) != 0) return workshare_cancelled(member);
  if ((kind & kCancelTaskgroup) != 0) {
    return taskgroup_cancelled(current_task()) || parallel_cancelled(member->team);
  }
  return parallel_cancelled(member->team) && leave_region(member);
}

bool end_cancellable(ImplicitTask* member) {
  // A member that left the cancelled region counts as arrived in all its barriers, so the barrier can
  // open before it is seen that it was cancelled.
  const bool cancelled = barrier_cancellable() || parallel_cancelled(member->team);
  return cancelled && leave_region(member);
}

}  // namespace bosk::omp
