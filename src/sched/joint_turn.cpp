// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/joint_turn.h"

#include <bit>

#include "sched/gangs.h"
#include "sched/monitor.h"
#include "sched/scheduler.h"
#include "sched/team_events.h"
#include "sched/tick_timer.h"
#include "sched/tuning.h"

namespace bosk::sched {
namespace {

/// Larger teams that poll take turns one by one: of so many some are always missing.
constexpr uint32_t kMostMembers = 32;
/// Workers that are looked at, or told, by one tick; of a pool of a thousand the nearest.
constexpr uint32_t kMostWorkers = 64;
/// Of a queue.
constexpr uint32_t kMostThreads = 64;

Together together(const Bubble* team) { return team->together.load(std::memory_order_relaxed); }

bool is_on(const Worker* w, uint64_t now) {
  // relaxed: a preference, and what the object says is atomic.
  const Bubble* team = w->turn_of.load(std::memory_order_relaxed);
  return team != nullptr && now < w->turn_until.load(std::memory_order_relaxed) &&
         (together(team) != Together::kNo ||
          now < team->turn_lingers_until.load(std::memory_order_relaxed));
}

/// Those that have nothing to do.
bool is_free(const Worker* w) { return w->idle.load(std::memory_order_relaxed) != 0; }

/// `team` cannot have it now. A gang whose opener is a member of the one in turn goes before that.
bool is_others(const Worker* w, const Bubble* team, uint64_t now) {
  if (is_on(w, now)) {
    const Bubble* turn = w->turn_of.load(std::memory_order_relaxed);
    return together(team) != Together::kGang || turn == team || turn == nullptr ||
           !descends_from(team, turn);
  }
  return (now < w->not_for_gangs_until.load(std::memory_order_relaxed) && !is_free(w));
}

bool claim_turn(Worker* w, Bubble* team, uint64_t now, uint64_t until) {
  uint64_t before = w->turn_until.load(std::memory_order_relaxed);
  if (is_others(w, team, now) ||
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

/// Calls `visit(worker)` for the workers nearest to `w` that play their roles, `most` of them, itself not among them, until that
/// returns false.
template <typename Visit>
void visit_neighbours(const Worker* w, uint32_t most, Visit visit) {
  const uint32_t workers = w->pool->worker_count.load(std::memory_order_acquire);
  WorkerOrder order = order_from(w, w->index, workers);
  uint32_t visited = 0;
  for (uint32_t at; visited < most && (at = order.next()) != WorkerOrder::kEnd;) {
    Worker* other = w->pool->worker(at);
    if (other == nullptr || other == w) continue;
    ++visited;
    if (!visit(other)) return;
  }
}

/// How many of the nearest workers a team's turn may be on.
uint32_t reach_of_turn(const Bubble* team) {
  return team->size_seen() < kMostWorkers ? kMostWorkers : kMaxWorkers;
}

/// A tick, so that it looks whose turn it is. Of a gang's none may be missed: where a thread has no CPU just now, or is in the scheduler,
/// quick ones follow, until it has looked.
void tell(Worker* w, bool surely) {
  context::Identity* kernel = w->kernel.load(std::memory_order_acquire);
  if (kernel == nullptr) return;
  if (surely) tick_soon(w);
  send_tick_if_it_runs(kernel);
}

/// Workers that are wanted for a turn.
class WorkerSet {
 public:
  bool has(const Worker* w) const { return (words_[w->index / 64] >> w->index % 64 & 1) != 0; }
  void add(const Worker* w) {
    if (has(w)) return;
    words_[w->index / 64] |= uint64_t{1} << w->index % 64;
    ++count_;
  }
  uint32_t count() const { return count_; }

  /// In the order of their numbers, until `visit(number)` returns false. Returns whether it never did.
  template <typename Visit>
  bool visit(Visit visit) const {
    for (uint32_t at = 0; at < kMaxWorkers / 64; ++at)
      for (uint64_t left = words_[at]; left != 0; left &= left - 1)
        if (!visit(64 * at + static_cast<uint32_t>(std::countr_zero(left)))) return false;
    return true;
  }

 private:
  uint64_t words_[kMaxWorkers / 64] = {};
  uint32_t count_ = 0;
};

/// As many workers as the team has members, `w` and its opener's among them. False: others have their turns on those that it would
/// need.
bool find_workers(Worker* w, const Bubble* team, uint64_t now, WorkerSet* wanted) {
  const bool gang = together(team) == Together::kGang;
  wanted->add(w);
  // Who opened it may have to run where it is at home.
  Worker* home = team->opener_seen()->pinned;
  if (home != nullptr && home->pool == w->pool) wanted->add(home);
  // A gang does not disturb others who could go on. Who polls finds those that idle by itself.
  for (int pass = gang ? 0 : 1; pass < 2 && wanted->count() < team->size_seen(); ++pass)
    visit_neighbours(w, reach_of_turn(team), [&](Worker* other) {
      if (wanted->count() == team->size_seen()) return false;
      if (in_reach(other, team) && !is_others(other, team, now) && (pass == 1 || is_free(other)))
        wanted->add(other);
      return true;
    });
  return wanted->count() == team->size_seen();
}

uint64_t length_of_turn(const Bubble* team) {
  if (together(team) != Together::kGang) return tuning::kTurnUs * base::cycles_per_microsecond();
  return team->gang_ticks.load(std::memory_order_relaxed) * (period_of_ticks(false) / 1000) *
         base::cycles_per_microsecond();
}

}  // namespace

namespace detail {
constinit std::atomic<bool> turns_are_possible{false};
}

void expect_turns() {
  if (!may_have_turns()) detail::turns_are_possible.store(true, std::memory_order_relaxed);
}

Bubble* team_of(Bubble* bubble) {
  while (bubble != nullptr && bubble->size_seen() == 1)
    bubble = bubble->parent.load(std::memory_order_relaxed);
  return bubble;
}

Bubble* team_in_turn(const Worker* w) {
  return is_on(w, base::cycles()) ? w->turn_of.load(std::memory_order_relaxed) : nullptr;
}

Thread* take_ready_member_of(Worker* w, const Bubble* team) {
  if (Thread* here = ready_member(w, w, team)) return here;
  Thread* found = nullptr;
  visit_neighbours(w, reach_of_turn(team), [&](Worker* other) {
    found = ready_member(w, other, team);
    return found == nullptr;
  });
  if (found != nullptr) add_seen(&w->counts.threads_stolen);
  return found;
}

Thread* take_member_of(Worker* w, Bubble* team) {
  if (Thread* ready = take_ready_member_of(w, team)) return ready;
  if (!worth_taking(w, team)) return nullptr;
  Thread* carrier = take_carrier(w);
  if (carrier == nullptr) {
    request_carriers(2);
    return nullptr;
  }
  w->wanted = team;
  return carrier;
}

Begun begin_turn_on(Worker* w, Bubble* team) {
  if (team == nullptr || together(team) == Together::kNo || team->size_seen() < 2 ||
      team->size_seen() > w->pool->worker_count.load(std::memory_order_relaxed) ||
      (team->size_seen() > kMostMembers && together(team) != Together::kGang))
    return Begun::kNever;
  const uint64_t now = base::cycles();
  if (is_others(w, team, now)) return Begun::kNotNow;
  WorkerSet wanted;
  if (!find_workers(w, team, now, &wanted)) return Begun::kNotNow;
  const uint64_t until = now + length_of_turn(team);
  // One that has just begun may not be in the table yet. Who puts it there may wait for a turn.
  const auto with_number = [w](uint32_t number) {
    return number == w->index ? w : w->pool->worker(number);
  };
  uint32_t refused_by = kMaxWorkers;
  wanted.visit([&](uint32_t number) {
    Worker* one = with_number(number);
    if (one != nullptr && claim_turn(one, team, now, until)) return true;
    refused_by = number;
    return false;
  });
  if (refused_by != kMaxWorkers) {
    wanted.visit([&](uint32_t number) {
      if (number >= refused_by) return false;
      // As one that has just ended: who runs there of a gang whose turn was over is to be told.
      with_number(number)->turn_until.store(now, std::memory_order_relaxed);
      return true;
    });
    return Begun::kNotNow;
  }
  team->turn_until.store(until, std::memory_order_relaxed);
  return Begun::kYes;
}

Begun begin_turn(Worker* w, Bubble* team) {
  if (BOSK_UNLIKELY(gangs_exist()) && !may_pass_line(w, team)) return Begun::kNotNow;
  const Begun begun = begin_turn_on(w, team);
  if (begun != Begun::kYes) return begun;
  if (BOSK_UNLIKELY(gangs_exist())) note_passed_line(w, team);
  add_seen(&w->counts.joint_turns);
  note_joint_turn(team);
  return begun;
}

bool rejoin_turn(Worker* w, Bubble* team) {
  const uint64_t now = base::cycles();
  const uint64_t until = team->turn_until.load(std::memory_order_relaxed);
  return now < until && claim_turn(w, team, now, until);
}

bool begin_turn_of(Worker* w, const Thread* next) {
  if (next->bubble == nullptr) return false;
  Bubble* gang = BOSK_UNLIKELY(gangs_exist()) ? gang_of(next->bubble) : nullptr;
  return begin_turn(w, gang != nullptr ? gang : team_of(next->bubble)) == Begun::kYes;
}

bool begin_turn_for_ghosts(Worker* w, const Thread* me) {
  Bubble* team = team_of(me->bubble);
  if (team == nullptr || team->ghosts.left() == 0) return false;
  // Whoever could come may wait, in a join, for something of this worker's own: that comes next if nobody has come.
  const uint64_t region = team->life() ^ reinterpret_cast<uintptr_t>(team) << 8;
  if (w->called_for_ghosts_of == region || begin_turn(w, team) != Begun::kYes) return false;
  w->called_for_ghosts_of = region;
  call_to_turn(w, team);
  return true;
}

void call_to_turn(Worker* w, const Bubble* team) {
  // As in offer(): what is to be found is queued, and who goes to sleep looks around once more.
  base::StdAtomics::light_barrier();
  const uint64_t now = base::cycles();
  const uint64_t lately = length_of_turn(team);
  // A gang's members are not to go on alone where its turn is over.
  const auto is_just_over = [&](const Worker* other) {
    return now - other->turn_until.load(std::memory_order_relaxed) < lately;
  };
  visit_neighbours(w, reach_of_turn(team), [&](Worker* other) {
    const bool is_called = other->turn_of.load(std::memory_order_relaxed) == team ||
                           (BOSK_UNLIKELY(gangs_exist()) && is_just_over(other));
    if (is_called && !call_if_idle(w, other)) tell(other, gangs_exist());
    return true;
  });
}

void end_turn(Worker* w) {
  const Bubble* team = w->turn_of.load(std::memory_order_relaxed);
  if (team == nullptr) return;
  leave_turn(w);
  visit_neighbours(w, reach_of_turn(team), [&](Worker* other) {
    if (other->turn_of.load(std::memory_order_relaxed) == team) leave_turn(other);
    return true;
  });
}

void leave_turn(Worker* w) { w->turn_until.store(0, std::memory_order_relaxed); }

bool await_next_region(Worker* w, Bubble* team) {
  const uint64_t begin = base::cycles();
  // Between two regions it polls for nothing, so not is_on().
  if (w->turn_of.load(std::memory_order_relaxed) != team ||
      begin >= w->turn_until.load(std::memory_order_relaxed))
    return false;
  const bool gang = BOSK_UNLIKELY(gangs_exist()) && gang_in_turn(w) == team;
  const uint64_t enough = tuning::kNextRegionUs * base::cycles_per_microsecond();
  do {
    if (worth_taking(w, team)) return true;
    base::cpu_pause();
  } while (base::cycles() - begin < enough);
  if (w->turn_of.load(std::memory_order_relaxed) != team) return false;
  // Others of a gang may go on for long.
  if (gang)
    leave_turn(w);
  else
    end_turn(w);
  return false;
}

}  // namespace bosk::sched
