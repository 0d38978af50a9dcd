// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Leagues: who is in which, without a lock, so that fork and preemption need no care.
#include "omp/host_teams.h"

#include <stdlib.h>

#include <atomic>
#include <new>

#include "base/message.h"
#include "omp/environment.h"
#include "omp/team.h"
#include "sched/worker.h"

namespace bosk::omp {
namespace {

/// The team that an initial thread's contention group is in. Records stay in the list for good and
/// serve the next initial thread that runs a league; there are as many as leagues ran at once.
struct League {
  std::atomic<const sched::Thread*> initial{nullptr};  ///< null: nobody's
  std::atomic<uint32_t> team_num{0};
  std::atomic<uint32_t> num_teams{1};
  uint32_t outer_thread_limit = 0;  ///< private to the initial thread
  League* next = nullptr;
};

constinit std::atomic<League*> leagues{nullptr};

// Members of nested teams answer for their group: the initial thread at the root of the nest.
const sched::Thread* group_of(const sched::Thread* me) {
  return me->pool != nullptr && me->pool->initial != nullptr ? me->pool->initial : me;
}

League* find_league(const sched::Thread* group) {
  // acquire pairs with the release in claim_league().
  for (League* l = leagues.load(std::memory_order_acquire); l != nullptr; l = l->next) {
    // relaxed: the group's own initial thread wrote it, before it opened any region.
    if (l->initial.load(std::memory_order_relaxed) == group) return l;
  }
  return nullptr;
}

League* claim_league(const sched::Thread* group) {
  for (League* l = leagues.load(std::memory_order_acquire); l != nullptr; l = l->next) {
    const sched::Thread* nobody = nullptr;
    if (l->initial.compare_exchange_strong(nobody, group, std::memory_order_relaxed)) return l;
  }
  void* memory = malloc(sizeof(League));
  if (memory == nullptr) base::gomp_fatal("Out of memory allocating %zu bytes", sizeof(League));
  auto* made = new (memory) League;
  made->initial.store(group, std::memory_order_relaxed);
  made->next = leagues.load(std::memory_order_relaxed);
  while (!leagues.compare_exchange_weak(made->next, made, std::memory_order_release,
                                        std::memory_order_relaxed)) {
  }
  return made;
}

uint32_t limit_for_teams(uint32_t clause) {
  return clause != 0 ? clause : teams_thread_limit_icv();
}

/// Applies the limit; returns the one that was in force.
uint32_t exchange_thread_limit(Task* task, uint32_t limit) {
  const uint32_t outer = task->icvs->thread_limit;
  if (limit != 0 && limit != outer) own_icvs(task)->thread_limit = limit;
  return outer;
}

void restore_thread_limit(Task* task, uint32_t limit) {
  if (task->icvs->thread_limit != limit) own_icvs(task)->thread_limit = limit;
}

}  // namespace

static const League* own_league() {
  // relaxed: most programs have no league, and whoever is in one made the record itself.
  if (BOSK_LIKELY(leagues.load(std::memory_order_relaxed) == nullptr)) return nullptr;
  const sched::Thread* me = context::self();
  return me == nullptr ? nullptr : find_league(group_of(me));
}

bool in_league() { return own_league() != nullptr; }

LeaguePosition league_position() {
  const League* league = own_league();
  if (league == nullptr) return {};
  return {league->team_num.load(std::memory_order_relaxed),
          league->num_teams.load(std::memory_order_relaxed)};
}

void run_league(void (*fn)(void*), void* data, uint32_t num_teams, uint32_t thread_limit) {
  // One team after the other, so the number is free; libgomp's 3 where nobody asks, so that a program
  // that prints or divides by it sees what it is used to.
  constexpr uint32_t kUnasked = 3;
  if (num_teams == 0) num_teams = num_teams_icv();
  if (num_teams == 0) num_teams = kUnasked;
  sched::Thread* me = current_thread();
  const sched::Thread* group = group_of(me);
  League* outer = find_league(group);
  League* league = outer != nullptr ? outer : claim_league(group);
  const LeaguePosition before = league_position();
  Task* task = me->task;
  const uint32_t limit = exchange_thread_limit(task, limit_for_teams(thread_limit));
  league->num_teams.store(num_teams, std::memory_order_relaxed);
  for (uint32_t team = 0; team < num_teams; ++team) {
    league->team_num.store(team, std::memory_order_relaxed);
    fn(data);
  }
  restore_thread_limit(task, limit);
  league->team_num.store(before.team_num, std::memory_order_relaxed);
  league->num_teams.store(before.num_teams, std::memory_order_relaxed);
  if (outer == nullptr) league->initial.store(nullptr, std::memory_order_relaxed);
}

bool next_team(uint32_t num_teams, uint32_t thread_limit, bool first) {
  sched::Thread* me = current_thread();
  const sched::Thread* group = group_of(me);
  League* league = find_league(group);
  if (first) {
    if (league == nullptr) league = claim_league(group);
    league->outer_thread_limit = exchange_thread_limit(me->task, limit_for_teams(thread_limit));
    league->num_teams.store(num_teams != 0 ? num_teams : 1, std::memory_order_relaxed);
    league->team_num.store(0, std::memory_order_relaxed);
    return true;
  }
  if (league == nullptr) return false;
  const uint32_t team = league->team_num.load(std::memory_order_relaxed) + 1;
  if (team < league->num_teams.load(std::memory_order_relaxed)) {
    league->team_num.store(team, std::memory_order_relaxed);
    return true;
  }
  restore_thread_limit(me->task, league->outer_thread_limit);
  league->team_num.store(0, std::memory_order_relaxed);
  league->num_teams.store(1, std::memory_order_relaxed);
  league->initial.store(nullptr, std::memory_order_relaxed);
  return false;
}

void limit_threads(uint32_t thread_limit) {
  if (thread_limit != 0) own_icvs(current_task())->thread_limit = thread_limit;
}

}  // namespace bosk::omp
