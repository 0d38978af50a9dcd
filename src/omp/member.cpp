// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Running the members of a team: ghosts on whatever thread claims them, natives on their workers.
#include <stdlib.h>

#include "context/thread_errno.h"
#include "omp/binding.h"
#include "omp/region.h"
#include "sched/address_wait.h"
#include "sched/ghost_identity.h"

namespace bosk::omp {
namespace {

/// What a thread was doing before it ran members of another team.
struct Outer {
  Task* task;
  ImplicitTask* member;
  sched::Bubble* bubble;
  sched::Doing doing;  ///< while watching()
};

Outer save(const sched::Thread* me) {
  return {me->task, me->member, me->bubble,
          BOSK_LIKELY(!watching()) ? sched::Doing{} : sched::what_does(me)};
}
void restore(sched::Thread* me, const Outer& outer) {
  me->task = outer.task;
  me->member = outer.member;
  me->set_bubble(outer.bubble);
  if (BOSK_UNLIKELY(watching())) sched::now_does(me, outer.doing);
}

/// A ghost begins as a thread that its opener has just made: with its floating-point environment, flags included, and
/// no error. What others have left there, on the same kernel thread or under the same identity, is theirs. `now`: the
/// calling thread's environment.
inline void begin_as_new_thread(const Team* team, context::FloatControl now) {
  if (BOSK_UNLIKELY(!context::same_float_state(now, team->floats)))
    context::set_float_state(team->floats, now);
  context::set_thread_errno(0);
}

/// Every ghost runs under an identity of its own, which stays reserved until the team has ended: a
/// member may read another's thread-local copies through a pointer.
uint32_t serve_each_identity(Team* team, sched::Thread* me, sched::Claim claim,
                             context::FloatControl floats, sched::Serving* serving) {
  context::Identity* const home = me->identity;
  const bool level_one = team->persistent;
  const uint32_t first_donor = team->native_count;
  ImplicitTask member;
  sched::enter(me);
  uint32_t count = 1;
  uint64_t mask = 0;
  for (;; ++count) {
    // It may have to wait for an identity: already as one of the team, whose reach holds for it.
    me->set_bubble(team);
    const uint32_t index = team->ghost_at(claim.index);
    context::Identity* identity;
    if (level_one) {
      identity = sched::member_identity(me, index - first_donor);
    } else {
      identity = sched::fresh_identity(me);
      identity->member_index = index;
      identity->next = serving->first;
      serving->first = identity;
      if (serving->last == nullptr) serving->last = identity;
    }
    sched::install_identity(me, identity);
    begin_member(me, team, &member, index, team->opener_task);
    begin_as_new_thread(team, floats);
    sched::leave(me);
    if (BOSK_UNLIKELY(team->partition_count != 0)) bind_member(me, &member);
    const uint32_t times_left = me->times_left;
    team->function(team->data);
    end_member(me, &member);
    if (BOSK_UNLIKELY(counting())) note_ghost(me, team->opened_on(), me->times_left == times_left);
    sched::enter(me);
    // Not before: a tick gives who has ended to others, under the identity that is still installed here until preemption
    // is on again.
    sched::note_served(me, serving, index, &mask);
    claim = sched::claim_next(me, team);
    if (!claim) break;
    floats = context::float_state();
  }
  if (me->identity != home) {
    me->run_as(home);
    context::set_thread_pointer(home->thread_pointer);
  }
  if (serving->first != nullptr) sched::hold_identities(team, serving->first, serving->last);
  serving->first = serving->last = nullptr;
  sched::leave(me);
  return count;
}

uint32_t serve_one_identity(Team* team, sched::Thread* me, sched::Claim claim,
                            context::FloatControl floats, sched::Serving* serving) {
  ImplicitTask member;
  uint64_t mask = 0;
  uint32_t index = team->ghost_at(claim.index);
  begin_member(me, team, &member, index, team->opener_task);
  for (uint32_t count = 1;; ++count) {
    begin_as_new_thread(team, floats);
    if (BOSK_UNLIKELY(team->partition_count != 0)) bind_member(me, &member);
    const uint32_t times_left = me->times_left;
    team->function(team->data);
    end_member(me, &member);
    if (BOSK_UNLIKELY(counting())) note_ghost(me, team->opened_on(), me->times_left == times_left);
    sched::note_served(me, serving, index, &mask);
    claim = sched::claim_next(me, team);
    if (!claim) return count;
    floats = context::float_state();
    index = team->ghost_at(claim.index);
    begin_next_member(me, team, &member, index);
  }
}

template <uint32_t (*kServe)(Team*, sched::Thread*, sched::Claim, context::FloatControl,
                             sched::Serving*)>
sched::Served serve(sched::Bubble* bubble, sched::Thread* me, sched::Claim first,
                    context::FloatControl floats) {
  const Outer outer = save(me);
  const uint32_t place = me->place;
  const bool metered = sched::metering();
  sched::Account account;
  if (BOSK_UNLIKELY(metered)) account = me->account;
  sched::Serving* serving = me->serving;
  serving->served.base = bubble->ghost_at(first.index) & ~63u;
  serving->served.count = kServe(static_cast<Team*>(bubble), me, first, floats, serving);
  restore(me, outer);
  if (BOSK_UNLIKELY(metered)) go_on_with(me, account);
  me->place = place;
  serving->served.mask = not_noted(*serving);
  return serving->served;
}

/// Native members below `index` in the tree have ended, with all below them, in that region.
bool subtrees_have_ended(const sched::Pool* pool, uint32_t index, uint32_t count, uint64_t region) {
  const uint32_t first = index * kTreeArity + 1;
  for (uint32_t child = first; child < first + kTreeArity && child < count; ++child)
    // acquire: what the child's subtree wrote in the region is visible after the join.
    if (pool->worker(child)->flat_ended.load(std::memory_order_acquire) < region) return false;
  return true;
}

bool children_have_ended(sched::Thread* me) {
  const auto* team = static_cast<const Team*>(me->bubble);
  return subtrees_have_ended(me->pool, me->pinned->index, team->native_count, team->sequence);
}

/// The member has just said that it has ended. Where members are more than processors, their parents sleep, and would be woken by
/// each child for nothing: the last one does it. Who looks at the others first has told of itself (the fence), so of
/// those that end at the same time one sees all. The team may be over: nothing of it is read.
bool is_last_of_siblings(const sched::Pool* pool, uint32_t parent, uint32_t count,
                         uint64_t region) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return subtrees_have_ended(pool, parent, count, region);
}

}  // namespace

void watch_member(sched::Thread* me, const Team* team, uint32_t index) {
  if (counting()) note_member(me, team->level);
  if (sched::metering()) meter_member(me, team, index);
}

void end_member_tasks(sched::Thread* me, ImplicitTask* member) {
  if (member->children.load(std::memory_order_acquire) != 0) drain_member_tasks(me, member);
  if (member->dependences != nullptr) free_dependences(member);
}

void end_member_slow(sched::Thread* me, ImplicitTask* member) {
  end_member_tasks(me, member);
  if (member->owns_icvs) {
    free(const_cast<DataIcvs*>(member->icvs));
    member->owns_icvs = false;
    member->icvs = &member->team->icvs;
  }
}

void serve_assigned(sched::Bubble* bubble, sched::Thread* me, uint32_t index) {
  auto* team = static_cast<Team*>(bubble);
  ImplicitTask member;
  begin_member(me, team, &member, index, team->opener_task);
  begin_as_new_thread(team, context::float_state());
  if (BOSK_UNLIKELY(team->partition_count != 0)) bind_member(me, &member);
  team->function(team->data);
  if (BOSK_UNLIKELY(watching())) note_part_ended(me);
  end_member(me, &member);
  me->place = 0;
}

sched::ServeGhosts how_to_serve(IdentityNeeds needs) {
  return needs == IdentityNeeds::kRelaxed ? serve<serve_one_identity> : serve<serve_each_identity>;
}

void post_to_children(sched::Pool* pool, Team* team, uint64_t sequence, uint32_t index,
                      const sched::NativeJob& job) {
  const uint32_t first = index * kTreeArity + 1;
  for (uint32_t child = first; child < first + kTreeArity && child < job.native_count; ++child)
    if (BOSK_UNLIKELY(sched::post_job(pool->worker(child), team, sequence, job)))
      pool->worker(index)->woke_sleeper = true;
}

bool children_have_ended_or_work(sched::Thread* me) {
  return children_have_ended(me) || me->bubble->queued_work.load(std::memory_order_relaxed) != 0;
}

void wait_for_children(sched::Thread* me, Team* team, ImplicitTask* member) {
  if (member->index * kTreeArity + 1 >= team->native_count) return;
  for (;;) {
    sched::native_wait(me, children_have_ended_or_work, team);
    if (children_have_ended(me)) break;
    run_one_team_task(me, team, true);
  }
  end_member(me, member);
}

void help_at_end(sched::Thread* me, Team* team, ImplicitTask* member) {
  if (BOSK_LIKELY(team->queued_work.load(std::memory_order_relaxed) == 0)) return;
  while (run_one_team_task(me, team)) {
  }
  end_member(me, member);
}

/// What a member that has ended was run under, if that matters.
static context::Identity* identity_of_ended(sched::Thread* me, Team* team, uint32_t index) {
  if (index < team->native_count || team->needs == IdentityNeeds::kRelaxed) return nullptr;
  if (team->persistent) return sched::member_identity(me, index - team->native_count);
  return sched::held_identity(team, index);
}

bool help(sched::Thread* me, sched::Bubble* bubble, uint64_t life, uint32_t index) {
  auto* team = static_cast<Team*>(bubble);
  if (!team->helpers.join()) return false;
  const bool same = team->life() == life;
  if (same) {
    const Outer outer = save(me);
    const uint32_t place = me->place;
    context::Identity* const home = me->identity;
    if (context::Identity* identity = identity_of_ended(me, team, index))
      sched::install_identity(me, identity);
    ImplicitTask member;
    set_up_member(me, team, &member, index, team->opener_task);
    inherit_float_control(team->floats);
    sched::leave(me);
    if (BOSK_UNLIKELY(team->partition_count != 0)) bind_member(me, &member);
    while (run_one_team_task(me, team)) {
    }
    end_member(me, &member);
    sched::enter(me);
    if (me->identity != home) {
      me->run_as(home);
      context::set_thread_pointer(home->thread_pointer);
    }
    me->place = place;
    restore(me, outer);
  }
  if (team->helpers.leave()) {
    sched::leave(me);
    sched::wake_after_rmw(team->helpers.word(), 1);
    sched::enter(me);
  }
  return same;
}

void end_help(Team* team) {
  team->helpers.close();
  while (const uint32_t left = team->helpers.left()) sched::wait_on(team->helpers.word(), left);
}

void serve_native(sched::Bubble* bubble, sched::Thread* me, const sched::NativeJob& job) {
  auto* team = static_cast<Team*>(bubble);
  sched::Worker* w = me->pinned;
  const uint32_t index = w->index;
  const uint64_t sequence = w->job_seen;
  post_to_children(me->pool, team, sequence, index, job);
  const Outer outer = save(me);
  ImplicitTask member;
  set_up_member(me, team, &member, index, job.opener_task);
  if (BOSK_UNLIKELY(watching())) note_part_begun(me, job.region);
  if (BOSK_UNLIKELY(counting() | sched::metering())) watch_member(me, team, index);
  // Level-1 members have threads that go on from region to region; deeper ones begin anew.
  if (BOSK_UNLIKELY(me->pool->outer != nullptr))
    begin_as_new_thread(team, context::float_state());
  else
    inherit_float_control(job.floats);
  if (BOSK_UNLIKELY(job.bound)) bind_member(me, &member);
  job.function(job.data);
  if (BOSK_UNLIKELY(watching())) note_part_ended(me);
  end_member(me, &member);
  if (BOSK_UNLIKELY(sched::metering())) meter_end_of_member(me, team);
  if (job.flat) {
    if (index * kTreeArity + 1 < job.native_count) wait_for_children(me, team, &member);
    const sched::Pool* pool = me->pool;
    const uint32_t parent = (index - 1) / kTreeArity;
    const uint32_t count = job.native_count;
    restore(me, outer);
    w->ended_native = {team, sequence, 1, index};
    w->flat_ended.store(sequence, std::memory_order_release);
    if (BOSK_UNLIKELY(count > pool->worker_limit) &&
        !is_last_of_siblings(pool, parent, count, sequence))
      return;
    if (BOSK_UNLIKELY(sched::wake_worker(pool->worker(parent)))) w->woke_sleeper = true;
    return;
  }
  sched::Served served;
  sched::WaitsBelow below{index};
  if (sched::may_serve_here(me) && team->needs != IdentityNeeds::kOwnStacks)
    served = serve_what_is_left(team, me, context::float_state(), &below);
  sched::Worker* now = sched::enter(me);
  restore(me, outer);
  if (served.count != 0) sched::note_ended_ghosts(now, team, served);
  if (BOSK_LIKELY(!below.lent)) w->ended_native = {team, team->life(), 1, index};
  sched::complete_members(now, team, served.count + 1);
  sched::leave(me);
}

}  // namespace bosk::omp
