// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which teams tell where they run: those whose size or places differ from what was told last for a team
// of the same place in the nest. As with libgomp, a team of one tells nothing.
#include "omp/affinity_display.h"

#include <atomic>

#include "omp/affinity_format.h"
#include "omp/team.h"
#include "omp/thread_place.h"
#include "sched/scheduler.h"

namespace bosk::omp {
namespace {

/// What was told last, by place in the nest. Two that fall on the same entry tell again and again what
/// need not be told, no more.
constexpr uint32_t kRemembered = 4096;
constinit std::atomic<uint64_t> told[kRemembered]{};

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

/// The team is the one that member `a` of member `b` of … of an initial thread's team opens.
uint64_t place_in_nest(const sched::Thread* me, const Team* team) {
  uint64_t hash = mix(team->level, reinterpret_cast<uintptr_t>(me->pool));
  for (; team->level != 0; team = parent_team(team)) hash = mix(hash, team->opener_index);
  return hash;
}

bool differs_from_last(const sched::Thread* me, const Team* team) {
  const uint64_t place = place_in_nest(me, team);
  uint64_t now = mix(place, team->size);
  if (team->partition_count != 0) {
    now = mix(now, static_cast<uint64_t>(team->bind));
    now = mix(now, uint64_t{team->partition_first} << 32 | team->partition_count);
    now = mix(now, team->opener_place);
  }
  now |= 1;  // 0 is an entry that nobody has used
  // relaxed: nothing else hangs on it.
  return told[place % kRemembered].exchange(now, std::memory_order_relaxed) != now;
}

}  // namespace

void display_member_affinity(sched::Thread* me) {
  const ImplicitTask* member = me->member;
  Team* team = member->team;
  if (team->size == 1) return;
  if (member->index == 0) team->shows_affinity = differs_from_last(me, team);
  if (!team->shows_affinity) return;
  // Writing may take long (a full pipe), and whoever reads may be a thread of this worker.
  const bool preemption_off = me->identity->block->preempt_off != 0;
  if (preemption_off) sched::leave(me);
  AffinityValues values;
  char host[kHostMax];
  fill_thread_values(&values, host);
  display_affinity(affinity_format(), values);
  if (preemption_off) sched::enter(me);
}

}  // namespace bosk::omp
