// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fork and join of parallel regions.
#include "omp/team.h"

#include <stdlib.h>

#include <new>

#include "base/message.h"
#include "base/settings.h"
#include "context/observers.h"
#include "context/thread_errno.h"
#include "omp/binding.h"
#include "omp/environment.h"
#include "omp/exception_globals.h"
#include "omp/open_teams.h"
#include "omp/region.h"
#include "omp/settle_memory.h"
#include "omp/watched_teams.h"
#include "sched/configuration.h"
#include "sched/ghost_identity.h"
#include "sched/kernel_threads.h"
#include "sched/preemption.h"
#include "sched/spins/polling_teams.h"

namespace bosk::omp {
namespace {

/// The ICVs that the region's implicit tasks start with (OpenMP 5.2 §2.4): the opener's, with the
/// next entries of the per-level lists.
void inherit_icvs(Team* team, const DataIcvs& from) {
  team->icvs = from;
  const ProcessIcvs& process = process_icvs();
  if (BOSK_UNLIKELY(process.nthreads.count > 1 || process.bind.count > 1)) {
    const uint32_t level = team->level;
    if (level < process.nthreads.count) team->icvs.nthreads = process.nthreads.at[level];
    if (level < process.bind.count) team->icvs.bind = process.bind.at[level];
  }
}

/// How many members the region gets (gomp-abi: request, active levels, dynamic, limit).
uint32_t size_of_team(const sched::Thread* me, const Task* task, uint32_t requested) {
  const DataIcvs& icvs = *task->icvs;
  uint32_t size = requested != 0 ? requested : icvs.nthreads;
  if (size == 1) return 1;
  const Team* outer = task->team;
  if (outer->active_level >= icvs.max_active_levels) return 1;
  if (BOSK_UNLIKELY(icvs.dynamic)) size = dynamic_team_size(size);
  if (BOSK_UNLIKELY(loads_known() != LoadsKnown::kNowhere) && requested == 0 &&
      (icvs.dynamic || base::settings().team_size_by_load))
    size = team_size_by_load(me, size);
  if (BOSK_UNLIKELY(icvs.thread_limit != UINT32_MAX)) size = reserve_threads(task, size);
  if (size > sched::kMaxTeam) size = sched::kMaxTeam;
  return size;
}

/// A region between its fork and its join, as the opener keeps it on its stack.
struct Opening {
  sched::Thread* me;
  Task* outer_task;
  ImplicitTask* outer_member;
  sched::Bubble* outer_bubble;
  Team* team;
  ImplicitTask member;
};

IdentityNeeds identity_needs(uint64_t now) {
#ifdef BOSK_OWN_STACKS
  return IdentityNeeds::kOwnStacks;
#endif
  if (!context::identities_observable_cached(now)) return IdentityNeeds::kRelaxed;
  return context::stacks_observable_cached(now) ? IdentityNeeds::kOwnStacks
                                                : IdentityNeeds::kStrict;
}

bool runs_native(const sched::Thread* me, const Team* outer) {
  return outer->active_level == 0 && me->pinned != nullptr && me->pinned->index == 0 &&
         BOSK_LIKELY(!root_team(outer)->inside_region);
}

/// Everything up to the moment where the other members may start. Preemption is off afterwards.
Team* open_region(Opening* opening, RegionFunction fn, void* data, uint32_t requested,
                  uint32_t proc_bind_clause) {
  sched::Thread* me = current_thread();
  Task* task = me->task;
  Team* outer = task->team;
  const uint32_t size = size_of_team(me, task, requested);
  if (BOSK_UNLIKELY(watching()) && BOSK_UNLIKELY(!sched::sampling())) keep_reporting(me);
  const LoadsKnown known = loads_known();
  TeamLoads* loads = nullptr;
  if (BOSK_UNLIKELY(known != LoadsKnown::kNowhere) &&
      (known == LoadsKnown::kEverywhere || outer->level == 0)) {
    loads = find_loads(outer, me->member->index, size);
    if (outer->level == 0) {
      const context::ErrnoKept kept;
      ready_memory(me, fn, loads, size, proc_bind_clause);
    }
  }
  sched::Worker* w = sched::enter(me);
  Team* team = static_cast<Team*>(w->free_bubbles);
  if (BOSK_LIKELY(team != nullptr)) {
    w->free_bubbles = team->next_free;
  } else {
    sched::leave(me);
    const context::ErrnoKept kept;
    team = make_team();
    w = sched::enter(me);
  }
  opening->me = me;
  opening->outer_task = task;
  opening->outer_member = me->member;
  opening->outer_bubble = me->bubble;
  opening->team = team;
  team->function = fn;
  team->data = data;
  team->opener_task = task;
  team->opener_index = me->member->index;
  team->parent.store(outer, std::memory_order_relaxed);
  team->home.store(w, std::memory_order_relaxed);
  team->depth.store(outer->depth.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  team->level = static_cast<uint16_t>(outer->level + 1);
  team->active_level = static_cast<uint16_t>(outer->active_level + (size > 1));
  team->set_opening(me, size);
  team->flat = false;
  team->native_count = 1;
  if (BOSK_UNLIKELY(known != LoadsKnown::kNowhere)) {
    team->loads.store(loads, std::memory_order_relaxed);
    team->order = nullptr;
    meter_region(me, team);
  }
  const bool counts = task->icvs->thread_limit != UINT32_MAX && size > 1;
  team->at_end.store(counts ? Team::kCountsThreads : uint8_t{0}, std::memory_order_relaxed);
  inherit_icvs(team, *task->icvs);
  inherit_places(team, me->member, proc_bind_clause);
  set_up_member(me, team, &opening->member, 0, task);
  if (BOSK_UNLIKELY(counting() | sched::metering())) watch_member(me, team, 0);
  if (BOSK_UNLIKELY(watching())) {
    note_region_opened(me, team);
    if (BOSK_UNLIKELY(counting())) note_region(me, team->level, size);
  }
  return team;
}

/// For members who may not touch the team's lines for it, which are in another CPU's cache.
uint16_t short_region_of(const Team* team) { return static_cast<uint16_t>(region_of(team)); }
static_assert(sched::kSampledRegions <= UINT16_MAX);

void number_region(sched::Thread* me, Team* team) {
  team->sequence = ++me->flat_regions;
  team->barriers_before = me->flat_barriers;
}

/// The next region's barriers have higher numbers than those of this one, which is flat and has ended.
void leave_barriers_behind(const Opening* opening) {
  sched::Thread* me = opening->me;
  const Team* team = opening->team;
  me->flat_barriers += opening->member.barriers;
  if (BOSK_LIKELY(team->cancelled.load(std::memory_order_relaxed) == 0)) return;
  // Some may have met more of them than the opener.
  for (uint32_t i = 1; i < team->size; ++i) {
    const uint64_t last = me->pool->worker(i)->flat_arrived.load(std::memory_order_relaxed);
    if (last > me->flat_barriers) me->flat_barriers = last;
  }
}

/// start_members() where every member has a kernel thread of its own. Preemption is on.
void start_in_sub_pool(Opening* opening) {
  const context::ErrnoKept kept;
  sched::Thread* me = opening->me;
  Team* team = opening->team;
  if (BOSK_UNLIKELY(watching())) note_mode(me, team, RegionMode::kKernelThreads);
  sched::enter_sub_pool(me, team->size);
  team->home.store(me->worker, std::memory_order_relaxed);
  team->needs = IdentityNeeds::kRelaxed;
  team->persistent = team->own_stacks = false;
  team->native_count = team->first_ghost = team->size;
  team->flat = true;
  number_region(me, team);
  post_to_children(me->pool, team, team->sequence, 0,
                   {team->function, team->data, team->opener_task, team->floats, team->size, true,
                    team->partition_count != 0, short_region_of(team)});
  if (team->partition_count != 0) bind_member(me, &opening->member);
}

void leave_sub_pool(const Opening* opening) {
  sched::leave_sub_pool(opening->me);
  if (opening->team->partition_count != 0) bind_member(opening->me, opening->outer_member);
}

uintptr_t code_of(const Team* team) { return reinterpret_cast<uintptr_t>(team->function); }

/// What the opener has found.
TeamLoads* loads_of(const Team* team) { return team->loads.load(std::memory_order_relaxed); }

/// Of members of whom something is known. `natives` have a worker each. With preemption on.
void use_hints(sched::Thread* me, Team* team, uint32_t natives) {
  order_ghosts(team, natives);
  show_to_watch(me, team, natives);
}

/// Starts the other members of a team of more than one. Preemption is off before, on after.
void start_members(Opening* opening) {
  sched::Thread* me = opening->me;
  Team* team = opening->team;
  sched::Pool* pool = me->pool;
  const uint32_t size = team->size;
  if (runs_native(me, parent_team(team))) {
    sched::leave(me);
    const context::ErrnoKept kept;
    const uint64_t now = base::cycles();
    pool->identity_needs = static_cast<uint8_t>(identity_needs(now));
    find_exception_globals(now);
    // Programs that act on kernel threads, and bound threads, get one each.
    const bool all_native =
        team->partition_count != 0 || context::kernel_threads_observable_cached(now);
    const uint32_t most = all_native ? sched::kMaxWorkers : pool->worker_limit;
    uint32_t natives = size < most ? size : most;
    if (BOSK_UNLIKELY(watching()) && all_native && size > pool->worker_limit)
      note_kernel_threads(team->partition_count != 0);
    // The calling thread has said that it is inside of a region: sched/pause.h.
    base::StdAtomics::light_barrier();
    if (BOSK_UNLIKELY(pool->usable.load(std::memory_order_relaxed) < natives ||
                      now >= pool->ask_at.load(std::memory_order_relaxed))) {
      const uint32_t have = sched::ensure_usable(pool, natives, all_native);
      if (have < natives) natives = have;
    }
    if (BOSK_UNLIKELY(natives < size) && !sched::can_multiplex(pool)) {
      natives = size;
      sched::require_workers(pool, size);
    }
    team->needs = static_cast<IdentityNeeds>(pool->identity_needs);
    team->share_shift = sched::share_shift(size - natives, natives);
    if (BOSK_UNLIKELY(loads_of(team) != nullptr)) use_hints(me, team, natives);
    sched::Worker* w = sched::enter(me);
    team->native_count = natives;
    team->persistent = team->needs != IdentityNeeds::kRelaxed;
    team->flat = size <= natives;
    team->first_ghost = natives;
    team->own_stacks = team->needs == IdentityNeeds::kOwnStacks;
    if (BOSK_UNLIKELY(watching()))
      note_mode(me, team,
                size <= pool->worker_limit ? RegionMode::kCpus
                : team->flat               ? RegionMode::kKernelThreads
                                           : RegionMode::kUserLevel);
    number_region(me, team);
    if (!team->flat) {
      if (BOSK_UNLIKELY(pool->placing.load(std::memory_order_relaxed) != 0)) place_outer_team(team);
      team->count_opening();
      team->serve = how_to_serve(team->needs);
      team->meeting.reset();
      team->pending.open(size);
      team->ghosts.open(size, natives);
      sched::publish_bubble(w, team);
      sched::arm_timer(w);
      sched::note_opening(w, team, code_of(team));
    }
    post_to_children(pool, team, team->sequence, 0,
                     {team->function, team->data, team->opener_task, team->floats, natives,
                      team->flat, team->partition_count != 0, short_region_of(team)});
    sched::leave(me);
    if (BOSK_UNLIKELY(team->partition_count != 0)) bind_member(me, &opening->member);
    return;
  }
  if (BOSK_UNLIKELY(pool->threading.load(std::memory_order_relaxed) !=
                    sched::Threading::kMultiplexed)) {
    sched::leave(me);
    const context::ErrnoKept kept;
    if (!sched::can_multiplex(pool)) {
      start_in_sub_pool(opening);
      return;
    }
    team->home.store(sched::enter(me), std::memory_order_relaxed);
  }
  if (BOSK_UNLIKELY(watching())) note_mode(me, team, RegionMode::kUserLevel);
  team->needs = static_cast<IdentityNeeds>(pool->identity_needs);
  team->persistent = false;
  team->share_shift = 0;
  team->own_stacks = team->needs == IdentityNeeds::kOwnStacks;
  sched::Worker* w = me->worker;
  if (BOSK_UNLIKELY(pool->worker_count.load(std::memory_order_relaxed) < pool->worker_limit)) {
    sched::leave(me);
    const context::ErrnoKept kept;
    const uint32_t wanted = pool->worker_count.load(std::memory_order_relaxed) + size - 1;
    sched::ensure_workers(pool, wanted < pool->worker_limit ? wanted : pool->worker_limit);
    w = sched::enter(me);
    team->home.store(w, std::memory_order_relaxed);
  }
  if (BOSK_UNLIKELY(loads_of(team) != nullptr)) {
    sched::leave(me);
    use_hints(me, team, 1);
    w = open_as_related(me, team);
  }
  if (BOSK_UNLIKELY(pool->placing.load(std::memory_order_relaxed) != 0))
    w = place_nested_team(me, team);
  team->count_opening();
  team->serve = how_to_serve(team->needs);
  team->meeting.reset();
  team->pending.open(size);
  team->ghosts.open(size, 1);
  sched::publish_bubble(w, team);
  sched::arm_timer(w);
  sched::note_opening(w, team, code_of(team));
  if (BOSK_UNLIKELY(team->together.load(std::memory_order_relaxed) == sched::Together::kGang))
    sched::wait_for_turn(me, team);
  sched::leave(me);
}

/// Member 0 has returned from the region's function: wait for the others.
void join_members(Opening* opening) {
  sched::Thread* me = opening->me;
  Team* team = opening->team;
  if (team->flat) {
    wait_for_children(me, team, &opening->member);
    if (BOSK_UNLIKELY(team->helpers.is_open())) end_help(team);
    leave_barriers_behind(opening);
    if (BOSK_UNLIKELY(sched::in_sub_pool(me))) leave_sub_pool(opening);
    return;
  }
  // Ghosts that run on this thread leave theirs behind: what member 0 ends with is the opener's.
  const context::FloatControl floats = context::float_state();
  const int own_errno = context::thread_errno();
  uint32_t own = 1;
  sched::Served served;
  sched::WaitsBelow below{0};
  if (BOSK_LIKELY(sched::may_serve_here(me)) && team->needs != IdentityNeeds::kOwnStacks) {
    // The opener may be inside a catch block; its ghosts are not.
    const ExceptionState exceptions = exceptions_enter();
    served = serve_what_is_left(team, me, floats, &below);
    own += served.count;
    exceptions_leave(exceptions);
  }
  const bool may_help = BOSK_LIKELY(!below.lent) || take_back(me, team, below);
  if (own != team->size && may_help) help_at_end(me, team, &opening->member);
  sched::judge_offer(sched::enter(me), team, own != team->size);
  me->set_bubble(team);
  if (own != team->size) {
    if (own > 1) sched::note_ended_ghosts(me->worker, team, served);
    while (!sched::join_bubble(me, team, own)) {
      own = 0;
      sched::leave(me);
      if (may_help) help_at_end(me, team, &opening->member);
      sched::enter(me);
    }
  }
  if (BOSK_UNLIKELY(team->helpers.is_open())) {
    sched::leave(me);
    end_help(team);
    sched::enter(me);
  }
  sched::retire_bubble(me->worker, team);
  if (team->needs != IdentityNeeds::kRelaxed) sched::release_identities(me->worker, team);
  sched::leave(me);
  const context::FloatControl now = context::float_state();
  if (!context::same_float_state(now, floats)) context::set_float_state(floats, now);
  context::set_thread_errno(own_errno);
  if (BOSK_UNLIKELY(team->partition_count != 0)) bind_member(me, opening->outer_member);
}

void see_to_end(Team* team) {
  const uint8_t what = team->at_end.load(std::memory_order_relaxed);
  if ((what & Team::kCountsThreads) != 0) release_threads(team);
  if ((what & Team::kIsShown) != 0) hide_open_team(team);
}

void close_region(Opening* opening) {
  sched::Thread* me = opening->me;
  Team* team = opening->team;
  if (BOSK_UNLIKELY(team->workshares.used)) workshare_reset(team);
  if (BOSK_UNLIKELY(team->at_end.load(std::memory_order_relaxed) != 0)) see_to_end(team);
  if (BOSK_UNLIKELY(sched::metering())) learn_loads(team);
  sched::note_closing(team, code_of(team));
  sched::Worker* w = sched::enter(me);
  if (BOSK_UNLIKELY(watching())) note_region_closed(me, team);
  me->task = opening->outer_task;
  me->member = opening->outer_member;
  // release: a pause that sees it sees the join.
  std::atomic_ref(me->bubble).store(opening->outer_bubble, std::memory_order_release);
  team->next_free = w->free_bubbles;
  w->free_bubbles = team;
  sched::leave(me);
}

}  // namespace

void parallel(RegionFunction fn, void* data, uint32_t num_threads, uint32_t proc_bind_clause,
              void (*prepare)(Team*, void*), void* argument) {
  Opening opening;
  Team* team = open_region(&opening, fn, data, num_threads, proc_bind_clause);
  set_recycled_state(team);
  if (prepare != nullptr) {
    sched::leave(opening.me);
    prepare(team, argument);
    sched::enter(opening.me);
  }
  if (team->size > 1) {
    start_members(&opening);
  } else {
    sched::leave(opening.me);
    if (BOSK_UNLIKELY(team->partition_count != 0)) bind_member(opening.me, &opening.member);
  }
  if (BOSK_UNLIKELY(watching())) note_part_begun(opening.me, region_of(team));
  fn(data);
  if (BOSK_UNLIKELY(watching())) note_part_ended(opening.me);
  end_member(opening.me, &opening.member);
  if (BOSK_UNLIKELY(sched::metering())) meter_end_of_member(opening.me, team);
  if (team->size > 1) join_members(&opening);
  close_region(&opening);
}

namespace {
/// Regions opened by the old protocol, innermost first; kept in the member that opened them.
struct OpenedByCall {
  Opening opening;
  OpenedByCall* outer;
};
}  // namespace

void parallel_begin(RegionFunction fn, void* data, uint32_t num_threads,
                    void (*prepare)(Team*, void*), void* argument) {
  void* memory = malloc(sizeof(OpenedByCall));
  if (memory == nullptr)
    base::gomp_fatal("Out of memory allocating %zu bytes", sizeof(OpenedByCall));
  auto* opened = new (memory) OpenedByCall;
  Team* team = open_region(&opened->opening, fn, data, num_threads, 0);
  set_recycled_state(team);
  team->opened_by_call = opened;
  sched::leave(opened->opening.me);
  if (prepare != nullptr) prepare(team, argument);
  sched::enter(opened->opening.me);
  if (team->size > 1)
    start_members(&opened->opening);
  else
    sched::leave(opened->opening.me);
  if (BOSK_UNLIKELY(watching())) note_part_begun(opened->opening.me, region_of(team));
}

void parallel_end() {
  sched::Thread* me = current_thread();
  auto* opened = static_cast<OpenedByCall*>(me->member->team->opened_by_call);
  if (BOSK_UNLIKELY(watching())) note_part_ended(me);
  end_member(me, &opened->opening.member);
  if (BOSK_UNLIKELY(sched::metering())) meter_end_of_member(me, opened->opening.team);
  if (opened->opening.team->size > 1) join_members(&opened->opening);
  close_region(&opened->opening);
  free(opened);
}

}  // namespace bosk::omp
