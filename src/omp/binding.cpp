// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Binding members to places: the kernel thread that runs a bound member is bound to its place.
#include "omp/binding.h"

#include "base/syscalls.h"
#include "omp/environment.h"
#include "omp/places.h"
#include "omp/thread_place.h"
#include "sched/scheduler.h"

namespace bosk::omp {
namespace {

bool binds_teams_of(const ImplicitTask* opener) {
  const ProcessIcvs& process = process_icvs();
  return opener->icvs->bind != Bind::kFalse && process.places != nullptr &&
         process.places->count() != 0;
}

/// Its place, and the part of the list that its teams get.
MemberPlace partition_of(const ImplicitTask* opener) {
  const MemberPlace here = place_of(opener);
  return here.partition_count != 0 ? here : MemberPlace{0, 0, process_icvs().places->count()};
}

}  // namespace

std::optional<PlaceLayout> layout_of_next(const ImplicitTask* opener, uint32_t proc_bind_clause,
                                          uint32_t members) {
  if (!binds_teams_of(opener)) return {};
  const MemberPlace here = partition_of(opener);
  return PlaceLayout(region_bind(opener->icvs->bind, proc_bind_clause), here.partition_first,
                     here.partition_count, here.place, members);
}

void inherit_places(Team* team, const ImplicitTask* opener, uint32_t proc_bind_clause) {
  team->partition_count = 0;
  if (BOSK_LIKELY(!binds_teams_of(opener))) return;
  team->bind = region_bind(opener->icvs->bind, proc_bind_clause);
  // As with libgomp, a clause also holds for the regions inside that have none, where OMP_PROC_BIND does
  // not name their level.
  if (proc_bind_clause != 0 && team->level >= process_icvs().bind.count)
    team->icvs.bind = team->bind;
  const MemberPlace here = partition_of(opener);
  team->partition_first = here.partition_first;
  team->partition_count = here.partition_count;
  team->opener_place = here.place;
}

void bind_member(sched::Thread* me, const ImplicitTask* member) {
  const MemberPlace where = place_of(member);
  if (where.partition_count == 0) return;
  sched::enter(me);
  me->place = where.place + 1;
  bind_to_place(me);
  sched::leave(me);
}

void bind_to_place(sched::Thread* me) {
  const sched::Worker* w = me->worker;  // null: promoted, on its identity's own kernel thread
  context::Identity* kernel =
      w != nullptr ? w->kernel.load(std::memory_order_relaxed) : me->identity;
  if (kernel->bound_place == me->place) return;
  constexpr uint32_t kWords = 1024;  // 65,536 CPUs, as many as a place list can name
  uint64_t mask[kWords] = {};
  process_icvs().places->fill_mask(me->place - 1, mask, kWords);
  // The kernel takes a mask of any length. Failure (a cpuset that shrank) leaves the thread where it is.
  base::raw_syscall(SYS_sched_setaffinity, 0, sizeof mask, base::address_of(mask));
  kernel->bound_place = me->place;
}

}  // namespace bosk::omp
