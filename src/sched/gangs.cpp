// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/gangs.h"

#include "context/thread_errno.h"
#include "sched/joint_turn.h"
#include "sched/pool_list.h"
#include "sched/scheduler.h"
#include "sched/team_events.h"
#include "sched/tick_timer.h"
#include "sched/tuning.h"
#include "sched/turns.h"

namespace bosk::sched {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

/// As policy `gang` has it for the program's own bubbles.
constexpr uint32_t kMostPassed = 16;
constexpr uint64_t kMostTurnsInLine = 100;
/// What part of a turn a worker waits for a member of the gang before others may have it.
constexpr uint64_t kPatienceOfTurn = 16;

/// Of all gangs that there have been, in ticks.
constinit std::atomic<uint32_t> longest_turn{1};

bool is_gang(const Bubble* team) { return team->together.load(kRelaxed) == Together::kGang; }

uint64_t cycles_of_tick() { return period_of_ticks(false) / 1000 * base::cycles_per_microsecond(); }

void leave_line(Pool* pool, Bubble* gang) {
  if (pool->gang_line.first.load(kRelaxed) != gang) return;
  Bubble* first = gang;
  pool->gang_line.first.compare_exchange_strong(first, nullptr, kRelaxed);
}

/// It is no gang any more, until its region ends.
void give_up(Pool* pool, Bubble* gang) {
  auto before = Together::kGang;
  gang->together.compare_exchange_strong(before, Together::kNo, kRelaxed);
  leave_line(pool, gang);
}

void stand_in_line(Pool* pool, Bubble* gang) {
  Pool::GangLine& line = pool->gang_line;
  if (line.first.load(kRelaxed) != nullptr) return;
  // Before: who sees the gang is not to take it for one that has been there as long as the one before.
  line.since.store(base::cycles(), kRelaxed);
  line.passed.store(0, kRelaxed);
  Bubble* nobody = nullptr;
  line.first.compare_exchange_strong(nobody, gang, std::memory_order_release, kRelaxed);
}

/// Who has found nothing else asks again and again, and with it all that have nothing to do: it looks at as many workers as
/// there are.
uint64_t pause_between_wishes(const Pool* pool) {
  return (1 + pool->worker_count.load(kRelaxed) / 16) * base::cycles_per_microsecond();
}

/// The worker is in another gang's turn, `other`, whose members it has looked for in vain for long enough. Those that have not begun are to
/// be had, as soon as there is a carrier for them.
bool has_looked_for_long(Worker* w, const Bubble* other, uint64_t now) {
  if (other->ghosts.left() != 0) return false;
  const uint64_t turn = w->turn_until.load(kRelaxed);
  if (w->refused_turn != turn) {
    w->refused_turn = turn;
    w->refused_since = now;
    return false;
  }
  // A member that another worker has just left may be on its way to a queue, and that worker may have no CPU for a while.
  return now - w->refused_since >
         other->gang_ticks.load(kRelaxed) * cycles_of_tick() / kPatienceOfTurn;
}

}  // namespace

namespace detail {
constinit std::atomic<bool> gangs_exist{false};
}

bool can_be_gang(Thread* me, uint32_t members) {
  if (period_of_ticks(false) == 0) return false;
  Pool* pool = me->pool;
  // Another member may be making workers, fewer than this needs. Where the system gives no more the limit is lowered.
  while (members > pool->worker_count.load(std::memory_order_acquire) &&
         members <= pool->worker_limit) {
    leave(me);
    {
      const context::ErrnoKept kept;
      if (ensure_workers(pool, members) < members) base::raw_syscall(SYS_sched_yield);
    }
    enter(me);
  }
  return members <= pool->worker_count.load(std::memory_order_acquire);
}

void make_gang(Bubble* team, uint32_t ticks) {
  if (!gangs_exist()) {
    detail::gangs_exist.store(true, kRelaxed);
    expect_turns();
  }
  // Two at once may leave the shorter one: the longer comes again.
  if (ticks > longest_turn.load(kRelaxed)) longest_turn.store(ticks, kRelaxed);
  team->gang_ticks.store(ticks, kRelaxed);
  team->together.store(Together::kGang, kRelaxed);
}

Bubble* gang_of(Bubble* bubble) {
  while (bubble != nullptr && !is_gang(bubble)) bubble = bubble->parent.load(kRelaxed);
  return bubble;
}

Bubble* gang_in_turn(const Worker* w) {
  Bubble* team = team_in_turn(w);
  return team != nullptr && is_gang(team) ? team : nullptr;
}

namespace {

bool may_begin(Worker* w, Bubble* gang) {
  const Bubble* turn = team_in_turn(w);
  if (turn == gang) {
    w->refused_turn = 0;
    return true;
  }
  const uint64_t now = base::cycles();
  w->not_for_gangs_until.store(0, kRelaxed);
  if (turn != nullptr && !descends_from(gang, turn)) {
    if (!has_looked_for_long(w, turn, now)) {
      stand_in_line(w->pool, gang);
      return false;
    }
    leave_turn(w);
  }
  if (rejoin_turn(w, gang)) {
    w->refused_turn = 0;
    return true;
  }
  if (now < w->ask_again_at) return false;
  switch (begin_turn(w, gang)) {
    case Begun::kYes:
      w->calls_turn = true;
      return true;
    case Begun::kNever:
      give_up(w->pool, gang);
      return true;
    case Begun::kNotNow:
      break;
  }
  stand_in_line(w->pool, gang);
  w->ask_again_at = now + pause_between_wishes(w->pool);
  return false;
}

/// One that is ready, and that no other worker can run: the gang's opener, most often.
bool has_pinned_member(Worker* w, const Bubble* gang) {
  if (w->ready.empty_hint()) return false;
  base::SpinGuard guard(w->ready.lock);
  for (const Entity* entity = w->ready.first; entity != nullptr; entity = entity->next) {
    const auto* thread = static_cast<const Thread*>(entity);
    if (thread->pinned == w && thread->bubble != nullptr && descends_from(thread->bubble, gang))
      return true;
  }
  return false;
}

void nap() {
  const timespec briefly{0, tuning::kGangNapNs};
  base::raw_syscall(SYS_nanosleep, base::address_of(&briefly), 0);
}

}  // namespace

bool may_run_of_gang(Worker* w, Bubble* gang) {
  const bool may = may_begin(w, gang);
  w->gang_refused |= !may;
  return may;
}

bool may_begin_of_gang(Worker* w, Bubble* gang) {
  return !has_pinned_member(w, gang) && may_run_of_gang(w, gang);
}

Thread* next_after_turn(Worker* w, Thread* me, Bubble* turn) {
  Thread* next = turn != nullptr     ? take_member_of(w, turn)
                 : something_else(w) ? next_in_turn(w)
                                     : fair_share(w);
  if (next == nullptr) {
    Bubble* gang = gang_of(me->bubble);
    if (may_run_of_gang(w, gang)) {
      call_gang_if_due(w);
      return me;
    }
    next = take_carrier(w);
    if (next == nullptr) {
      request_carriers(2);
      return me;
    }
  } else if (next->bubble != nullptr && gang_of(next->bubble) == nullptr) {
    w->not_for_gangs_until.store(base::cycles() + cycles_of_tick(), kRelaxed);
  }
  w->calls_turn = true;
  return next;
}

bool nap_if_refused(Worker* w) {
  if (!w->gang_refused) return false;
  w->gang_refused = false;
  nap();
  return true;
}

void call_gang_if_due(Worker* w) {
  if (!w->calls_turn) return;
  w->calls_turn = false;
  // Also if it is over: to those whose turn that was.
  if (const Bubble* team = w->turn_of.load(kRelaxed)) call_to_turn(w, team);
}

bool may_run_of_gangs(Worker* w, const Thread* thread) {
  Bubble* gang = gang_of(thread->bubble);
  // All others have ended, who have called it.
  return gang == nullptr || (thread == gang->opener && gang->pending.done()) ||
         may_run_of_gang(w, gang);
}

Thread* pop_ready_of_gangs(Worker* w) {
  Thread* found = nullptr;
  if (const Bubble* gang = gang_in_turn(w))
    if (Thread* member = take_ready_member_of(w, gang)) return member;
  if (w->ready.empty_hint()) return nullptr;
  {
    base::SpinGuard guard(w->ready.lock);
    for (Entity* entity = w->ready.first; entity != nullptr; entity = entity->next) {
      auto* thread = static_cast<Thread*>(entity);
      if (!may_run_of_gangs(w, thread)) continue;
      w->ready.remove_locked(thread);
      found = thread;
      break;
    }
  }
  call_gang_if_due(w);
  return found;
}

void wait_for_turn(Thread* me, Bubble* gang) {
  while (is_gang(gang) && !may_run_of_gang(me->worker, gang)) {
    leave(me);
    // What it gives way to comes back to it as soon as its gang may run.
    if (!let_others_run(me)) nap();
    enter(me);
  }
  call_gang_if_due(me->worker);
}

void close_gang(Bubble* gang) {
  // Its next region is likely to open soon: others that got its workers for so long would have to be told, and so would it again.
  gang->turn_lingers_until.store(
      base::cycles() + tuning::kNextRegionUs * base::cycles_per_microsecond(), kRelaxed);
  gang->together.store(Together::kNo, kRelaxed);
  leave_line(gang->opener->pool, gang);
}

uint32_t count_running(Thread* me, const Bubble* team) {
  enter(me);
  uint32_t running = 0;
  {
    // What workers have stays under it.
    base::SpinGuard guard(pools.lock);
    const uint32_t workers = me->pool->worker_count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < workers; ++i) {
      Worker* w = me->pool->worker(i);
      Thread* thread = w != nullptr ? who_runs_on(w) : nullptr;
      if (thread == nullptr) continue;
      const Bubble* bubble = seen(thread->bubble);
      running += bubble != nullptr && descends_from(bubble, team) ? 1 : 0;
    }
  }
  leave(me);
  return running;
}

bool may_pass_line(Worker* w, Bubble* team) {
  Pool::GangLine& line = w->pool->gang_line;
  // acquire: with the time.
  Bubble* first = line.first.load(std::memory_order_acquire);
  if (BOSK_LIKELY(first == nullptr) || first == team) return true;
  // Where it was opened. If it is another team by now, that one does not wait for us.
  Worker* home = first->opened_on();
  if (home->pool != w->pool || !is_gang(first)) {
    leave_line(w->pool, first);
    return true;
  }
  switch (begin_turn_on(home, first)) {
    case Begun::kYes:
      leave_line(w->pool, first);
      add_seen(&w->counts.joint_turns);
      note_joint_turn(first);
      call_to_turn(w, first);
      return true;
    case Begun::kNever:
      give_up(w->pool, first);
      return true;
    case Begun::kNotNow:
      break;
  }
  // It may have come later than we looked at the time.
  const uint64_t since = line.since.load(kRelaxed);
  const uint64_t now = base::cycles();
  if (now > since &&
      now - since > kMostTurnsInLine * longest_turn.load(kRelaxed) * cycles_of_tick()) {
    give_up(w->pool, first);
    return true;
  }
  return line.passed.load(kRelaxed) < kMostPassed;
}

void note_passed_line(Worker* w, const Bubble* team) {
  Pool::GangLine& line = w->pool->gang_line;
  Bubble* first = line.first.load(kRelaxed);
  if (BOSK_LIKELY(first == nullptr)) return;
  if (first == team)
    line.first.compare_exchange_strong(first, nullptr, kRelaxed);
  else
    line.passed.fetch_add(1, kRelaxed);
}

}  // namespace bosk::sched
