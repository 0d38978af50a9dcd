// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/spins/joint_turn.h"

#include "sched/monitor.h"
#include "sched/scheduler.h"
#include "sched/tick_timer.h"
#include "sched/tuning.h"

namespace bosk::sched {
namespace {

/// Larger teams take turns one by one: of so many some are always missing.
constexpr uint32_t kMostMembers = 32;
/// Workers that are looked at, or told, by one tick; of a pool of a thousand the nearest.
constexpr uint32_t kMostWorkers = 64;
/// Of a queue.
constexpr uint32_t kMostThreads = 64;

bool polls(const Bubble* team) { return team->polls.load(std::memory_order_relaxed) != Polls::kNo; }

bool is_on(const Worker* w, uint64_t now) {
  // relaxed: a preference, and what the object says is atomic.
  const Bubble* team = w->turn_of.load(std::memory_order_relaxed);
  return team != nullptr && now < w->turn_until.load(std::memory_order_relaxed) && polls(team);
}

bool claim_turn(Worker* w, Bubble* team, uint64_t now, uint64_t until) {
  uint64_t before = w->turn_until.load(std::memory_order_relaxed);
  if (is_on(w, now) ||
      !w->turn_until.compare_exchange_strong(before, until, std::memory_order_relaxed))
    return false;
  w->turn_of.store(team, std::memory_order_relaxed);
  return true;
}

Thread* ready_member(Worker* w, Worker* victim, const Bubble* team) {
  if (victim->ready.empty_hint() || !victim->ready.lock.try_lock()) return nullptr;
  Thread* found = nullptr;
  uint32_t looked_at = 0;
  for (Entity* entity = victim->ready.first; entity != nullptr && looked_at < kMostThreads;
       entity = entity->next, ++looked_at) {
    auto* thread = static_cast<Thread*>(entity);
    if ((thread->pinned != nullptr && thread->pinned != w) || thread->bubble == nullptr ||
        !descends_from(thread->bubble, team))
      continue;
    victim->ready.remove_locked(thread);
    found = thread;
    break;
  }
  victim->ready.lock.unlock();
  return found;
}

/// The team that members of `bubble` are in: a region of one thread is none.
Bubble* team_of(Bubble* bubble) {
  while (bubble != nullptr && bubble->size == 1)
    bubble = bubble->parent.load(std::memory_order_relaxed);
  return bubble;
}

/// Calls `visit(worker)` for the workers nearest to `w` that play their roles, itself not among them, until that returns false.
template <typename Visit>
void visit_neighbours(const Worker* w, Visit visit) {
  const uint32_t workers = w->pool->worker_count.load(std::memory_order_acquire);
  WorkerOrder order = order_from(w, w->index, workers);
  uint32_t visited = 0;
  for (uint32_t at; visited < kMostWorkers && (at = order.next()) != WorkerOrder::kEnd;) {
    Worker* other = w->pool->worker(at);
    if (other == nullptr || other == w) continue;
    ++visited;
    if (!visit(other)) return;
  }
}

bool is_idle(const Worker* w) { return w->idle.load(std::memory_order_relaxed) != 0; }

/// A tick, so that it looks whose turn it is.
void tell(Worker* w) { send_tick_if_it_runs(w->kernel.load(std::memory_order_acquire)); }

}  // namespace

Bubble* team_in_turn(const Worker* w) {
  return is_on(w, base::cycles()) ? w->turn_of.load(std::memory_order_relaxed) : nullptr;
}

Thread* take_member_of(Worker* w, Bubble* team) {
  if (Thread* here = ready_member(w, w, team)) return here;
  Thread* found = nullptr;
  visit_neighbours(w, [&](Worker* other) {
    found = ready_member(w, other, team);
    return found == nullptr;
  });
  if (found != nullptr) {
    add_seen(&w->counts.threads_stolen);
    return found;
  }
  if (!worth_taking(w, team)) return nullptr;
  Thread* carrier = take_carrier(w);
  if (carrier == nullptr) {
    request_carriers(2);
    return nullptr;
  }
  w->wanted = team;
  return carrier;
}

bool begin_turn(Worker* w, Bubble* team) {
  if (team == nullptr || !polls(team) || team->size < 2 || team->size > kMostMembers ||
      team->size > w->pool->worker_count.load(std::memory_order_relaxed))
    return false;
  const uint64_t now = base::cycles();
  if (is_on(w, now)) return false;
  // In the order of their numbers.
  Worker* wanted[kMostMembers];
  uint32_t count = 0;
  const auto add = [&](Worker* other) {
    uint32_t at = count++;
    for (; at > 0 && wanted[at - 1]->index > other->index; --at) wanted[at] = wanted[at - 1];
    wanted[at] = other;
  };
  add(w);
  // Who opened it may have to run where it is at home.
  Worker* home = team->opener->pinned;
  if (home != nullptr && home != w && home->pool == w->pool) add(home);
  visit_neighbours(w, [&](Worker* other) {
    if (count == team->size) return false;
    if (other != home && !is_on(other, now) && in_reach(other, team)) add(other);
    return true;
  });
  if (count < team->size) return false;
  const uint64_t until = now + tuning::kTurnUs * base::cycles_per_microsecond();
  for (uint32_t i = 0; i < count; ++i) {
    if (claim_turn(wanted[i], team, now, until)) continue;
    while (i-- > 0) wanted[i]->turn_until.store(0, std::memory_order_relaxed);
    return false;
  }
  add_seen(&w->counts.joint_turns);
  return true;
}

bool is_of_polling_team(const Thread* thread) {
  const Bubble* team = with_reach(thread->bubble);
  return team != nullptr && polls(team);
}

bool begin_turn_of(Worker* w, const Thread* next) {
  return next->bubble != nullptr && begin_turn(w, team_of(next->bubble));
}

bool begin_turn_for_ghosts(Worker* w, const Thread* me) {
  Bubble* team = team_of(me->bubble);
  if (team == nullptr || team->ghosts.left() == 0 || !begin_turn(w, team)) return false;
  call_to_turn(w);
  return true;
}

void call_to_turn(Worker* w) {
  Bubble* team = team_in_turn(w);
  if (team == nullptr) return;
  visit_neighbours(w, [&](Worker* other) {
    if (other->turn_of.load(std::memory_order_relaxed) == team && !is_idle(other)) tell(other);
    return true;
  });
  offer(w, kLookAround);
}

bool await_next_region(Worker* w, Bubble* team) {
  const uint64_t begin = base::cycles();
  // Between two regions it polls for nothing, so not is_on().
  if (w->turn_of.load(std::memory_order_relaxed) != team ||
      begin >= w->turn_until.load(std::memory_order_relaxed))
    return false;
  const uint64_t enough = tuning::kNextRegionUs * base::cycles_per_microsecond();
  do {
    if (worth_taking(w, team)) return true;
    base::cpu_pause();
  } while (base::cycles() - begin < enough);
  end_turn(w);
  return false;
}

void end_turn(Worker* w) {
  const Bubble* team = w->turn_of.load(std::memory_order_relaxed);
  w->turn_until.store(0, std::memory_order_relaxed);
  visit_neighbours(w, [&](Worker* other) {
    if (other->turn_of.load(std::memory_order_relaxed) == team)
      other->turn_until.store(0, std::memory_order_relaxed);
    return true;
  });
}

void note_polling(Thread* me, uintptr_t program_counter) {
  polling_loops.note(block_of_code(program_counter));
  Bubble* team = team_of(me->bubble);
  if (team != nullptr && team->polls.load(std::memory_order_relaxed) != Polls::kSeen)
    team->polls.store(Polls::kSeen, std::memory_order_relaxed);
}

void note_computing(Worker* w, Thread* me, uintptr_t program_counter) {
  if (++w->doubts < tuning::kMostDoubts) return;
  w->doubts = 0;
  polling_loops.forget(block_of_code(program_counter));
  if (Bubble* team = team_of(me->bubble)) team->polls.store(Polls::kNo, std::memory_order_relaxed);
}

bool is_trusted(Worker* w, const Thread* me, uintptr_t program_counter) {
  return is_of_polling_team(me) && !w->probe.watches(me) &&
         polling_loops.has(block_of_code(program_counter)) &&
         ++w->trusted % tuning::kVerifiedEvery != 0;
}

void expect_polling(Worker* w, Bubble* team, uintptr_t function) {
  if (!polling_regions.has(function)) return;
  team->polls.store(Polls::kExpected, std::memory_order_relaxed);
  if (begin_turn(w, team)) call_to_turn(w);
  // The first tick comes soon.
  w->current->slice_ns = tuning::kHandOverTickNs;
  set_slice(w->kernel.load(std::memory_order_relaxed), tuning::kHandOverTickNs);
}

void forget_polling(Bubble* team, uintptr_t function) {
  // Members that ran at the same time were not met polling, and those of a region that does not poll any more neither.
  static constinit std::atomic<uint32_t> unseen{0};
  static constinit std::atomic<uint32_t> patience{1024};
  const bool seen = team->polls.load(std::memory_order_relaxed) == Polls::kSeen;
  team->polls.store(Polls::kNo, std::memory_order_relaxed);
  if (seen) {
    polling_regions.note(function);
    unseen.store(0, std::memory_order_relaxed);
  } else if (unseen.fetch_add(1, std::memory_order_relaxed) >=
             patience.load(std::memory_order_relaxed)) {
    polling_regions.forget(function);
    unseen.store(0, std::memory_order_relaxed);
    patience.store(2 * patience.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
}

}  // namespace bosk::sched
