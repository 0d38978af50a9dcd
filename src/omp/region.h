// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What fork, join, members and barriers share inside the OpenMP layer.
#pragma once

#include "base/assert.h"
#include "omp/region_watch.h"
#include "omp/report.h"
#include "omp/team.h"
#include "sched/cpu_clock.h"
#include "sched/scheduler.h"

namespace bosk::omp {

/// CPUs of the process's affinity mask when the runtime started.
uint32_t available_processors();
/// Of the calling thread, which may have been given others since.
uint32_t processors_now();
/// dyn-var: at most the processors that the load average leaves free.
uint32_t dynamic_team_size(uint32_t wanted);
/// Takes threads from the contention group's limit; release_threads() gives them back.
uint32_t reserve_threads(const Task* task, uint32_t wanted);
void release_threads(const Team* team);

/// Flat teams: native members 1.. form a tree with this many children each, along which jobs are
/// handed on and arrivals are collected.
constexpr uint32_t kTreeArity = 4;

inline void set_up_member(sched::Thread* me, Team* team, ImplicitTask* member, uint32_t index,
                          Task* opener_task) {
  member->parent = opener_task;
  member->team = team;
  member->icvs = &team->icvs;
  member->group = nullptr;
  member->dependences = nullptr;
  member->children.store(0, std::memory_order_relaxed);
  member->is_implicit = true;
  member->final_task = false;
  member->owns_icvs = false;
  member->index = index;
  member->singles = 0;
  member->barriers = 0;
  member->workshare = nullptr;
  me->task = member;
  me->member = member;
  me->set_bubble(team);
}

/// Somebody wants to hear of members.
[[gnu::cold]] void watch_member(sched::Thread* me, const Team* team, uint32_t index);

inline void begin_member(sched::Thread* me, Team* team, ImplicitTask* member, uint32_t index,
                         Task* opener_task) {
  set_up_member(me, team, member, index, opener_task);
  if (BOSK_UNLIKELY(watching())) note_part_begun(me, region_of(team));
  if (BOSK_UNLIKELY(counting() | sched::metering())) watch_member(me, team, index);
}

/// The thread's member has ended, and it begins the team's next: what is not set here is as it was at the beginning.
inline void begin_next_member(sched::Thread* me, Team* team, ImplicitTask* member, uint32_t index) {
  BOSK_ASSERT(me->task == member && me->member == member && me->bubble == team);
  BOSK_ASSERT(member->icvs == &team->icvs && member->dependences == nullptr && !member->owns_icvs &&
              member->children.load(std::memory_order_relaxed) == 0);
  member->group = nullptr;
  member->index = index;
  member->singles = 0;
  member->barriers = 0;
  member->workshare = nullptr;
  if (BOSK_UNLIKELY(counting() | sched::metering())) watch_member(me, team, index);
}

void end_member_slow(sched::Thread* me, ImplicitTask* member);
/// The part of it that sees the member's own tasks end and frees what they left.
void end_member_tasks(sched::Thread* me, ImplicitTask* member);

/// The member's function has returned: its tasks end, its private copies go.
inline void end_member(sched::Thread* me, ImplicitTask* member) {
  // relaxed: zero means that the member itself has created nothing that still lives.
  if (BOSK_UNLIKELY(member->children.load(std::memory_order_relaxed) != 0 || member->owns_icvs ||
                    member->dependences != nullptr))
    end_member_slow(me, member);
  if (BOSK_UNLIKELY(counting())) note_member_end(me, member);
}

/// A member on a thread that was there before has the opener's settings; its flags are its own.
inline void inherit_float_control(const context::FloatControl& floats) {
  if (BOSK_UNLIKELY(!context::same_float_control(context::float_state(), floats)))
    context::set_float_control(floats);
}

/// A new object for a team; those of ended regions are used first.
Team* make_team();

/// How the scheduler runs members of every team (member.cpp).
sched::ServeGhosts how_to_serve(IdentityNeeds needs);
void serve_assigned(sched::Bubble* bubble, sched::Thread* me, uint32_t index);
void serve_native(sched::Bubble* bubble, sched::Thread* me, const sched::NativeJob& job);

/// What the last region of the team object may have changed.
inline void set_recycled_state(Team* team) {
  team->single_taken.store(0, std::memory_order_relaxed);
  // Idle workers poll it: the line stays theirs, too, as long as it is not written.
  if (BOSK_UNLIKELY(team->queued_work.load(std::memory_order_relaxed) != 0))
    team->queued_work.store(0, std::memory_order_relaxed);
  team->serve_assigned = serve_assigned;
  team->floats = context::float_state();
  if (BOSK_UNLIKELY(team->cancelled.load(std::memory_order_relaxed) != 0)) {
    team->cancelled.store(0, std::memory_order_relaxed);
  }
  team->cancel_bits.store(0, std::memory_order_relaxed);
}

/// For members of the team: ghosts that nobody has claimed. `floats`: as ServeGhosts says; `below`: the
/// member itself, whose part is over.
inline sched::Served serve_what_is_left(Team* team, sched::Thread* me, context::FloatControl floats,
                                        sched::WaitsBelow* below) {
  if (BOSK_UNLIKELY(team->adoption.is_known()) && sched::is_left_to_adopter(me, team)) return {};
  const sched::Claim first = sched::claim_next(me, team);
  if (!first) return {};
  // Under identities of their own nobody else can stand for who waits on this stack, whose identity stays
  // with its kernel thread.
  sched::Serving serving{
      team, me->serving, team->needs == IdentityNeeds::kRelaxed ? below : nullptr, {}};
  me->serving = &serving;
  const bool asks = sched::asks_cpu_time(me);
  const uint64_t since = BOSK_UNLIKELY(asks) ? sched::begin_excluding(me) : 0;
  const sched::Served served = team->serve(team, me, first, floats);
  if (BOSK_UNLIKELY(asks)) sched::exclude(me, since);
  me->serving = serving.outer;
  return served;
}
/// The member that waited below is on its own again. False: somebody stands for it until the region ends.
inline bool take_back(sched::Thread* me, Team* team, const sched::WaitsBelow& below) {
  sched::Worker* w = sched::enter(me);
  const bool back = sched::take_back_member(w, team, below.index);
  sched::leave(me);
  return back;
}
/// Hands the team's job on to the tree children of native member `index`.
void post_to_children(sched::Pool* pool, Team* team, uint64_t sequence, uint32_t index,
                      const sched::NativeJob& job);
/// Waits until the native members below the calling one in the tree have ended; runs the team's tasks
/// meanwhile.
void wait_for_children(sched::Thread* me, Team* team, ImplicitTask* member);

// At the end of a region compilers leave out barriers that its join makes superfluous, so there may be
// tasks when members have already ended. Who waits in the join runs them, and so do idle workers, as
// members that they ran (sched/ended_members.h).

/// The calling thread's member has ended: it runs what tasks the team has now.
void help_at_end(sched::Thread* me, Team* team, ImplicitTask* member);
/// The same as a member that ended before; false if the region is over.
bool help(sched::Thread* me, sched::Bubble* bubble, uint64_t life, uint32_t index);
/// The opener, after the join: returns when no helper looks at the team any more.
void end_help(Team* team);

}  // namespace bosk::omp
