// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/spins/outside.h"

#include <time.h>

#include "sched/monitor.h"
#include "sched/pool_list.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"
#include "sched/spins/polling_teams.h"
#include "sched/spins/probe_at_tick.h"
#include "sched/thread_clock.h"
#include "sched/tick_timer.h"
#include "sched/tuning.h"

namespace bosk::sched {
namespace {

struct Demand {
  std::atomic<uint64_t> until{0};  ///< members want more CPUs than are left, until then, in cycles
  std::atomic<uint32_t> longest_pause_us{0};
};
/// relaxed, all of it: preferences.
constinit Demand demand;

/// Explicit threads run on the workers of pools whose initial thread has no region open: that is inside.
bool is_outside(Pool* pool) {
  if (pool->entities.load(std::memory_order_relaxed) != nullptr) return false;
  // acquire: set_bubble().
  const Bubble* bubble = std::atomic_ref(pool->initial->bubble).load(std::memory_order_acquire);
  return bubble != nullptr && bubble->depth.load(std::memory_order_relaxed) == 0;
}

uint32_t busy_workers(const Pool* pool) {
  uint32_t count = 0;
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < workers; ++i) {
    const Worker* w = pool->worker(i);
    count += w != nullptr && w->idle.load(std::memory_order_relaxed) == 0;
  }
  return count;
}

}  // namespace

void OutsideWatch::begin_look() {
  now_ = base::cycles();
  members_ = outside_ = may_poll_ = 0;
  has_rivals_ = has_new_ = false;
}

void OutsideWatch::look_at(Pool* pool) {
  cpus_ = pool->worker_limit;
  if (!is_outside(pool)) {
    members_ += busy_workers(pool);
    has_rivals_ |= pool->rivals.are_here(now_);
    return;
  }
  if (pool->outer != nullptr) return;
  context::Identity* kernel = pool->initial->own;
  const uint64_t clock = thread_clock_now(kernel->tid);
  if (clock == UINT64_MAX) return;
  const bool has_run = clock != kernel->polls_last_clock;
  kernel->polls_last_clock = clock;
  const uint32_t polls = kernel->polls_outside.load(std::memory_order_relaxed);
  if (polls != kernel->polls_seen || kernel->polls_patience_ns == 0) {
    outside_ += polls != kernel->polls_seen;
    has_new_ |= kernel->polls_patience_ns == 0;
    kernel->polls_seen = polls;
    kernel->polls_clock = clock;
    kernel->polls_patience_ns =
        polls != 0 ? tuning::kOutsidePatienceOfPollersNs : tuning::kOutsidePatienceNs;
    return;
  }
  if (!has_run) return;
  ++outside_;
  if (clock - kernel->polls_clock >= kernel->polls_patience_ns && may_poll_ < kMostTold)
    who_may_poll_[may_poll_++] = kernel;
}

bool OutsideWatch::end_look() {
  // As with members: where ticks come quickly anyway nobody is watched.
  if (period_of_ticks(false) <= tuning::kQuickTickNs) return false;
  const uint32_t all = members_ + outside_;
  const bool several = pools.initial_threads.load(std::memory_order_relaxed) > 1;
  looks_left_ = members_ != 0 && several ? kLooksAfter : looks_left_ - (looks_left_ != 0);
  // Those that poll from their beginning: the next look is to come soon.
  bool acted = members_ != 0 && has_new_;
  if (members_ == 0 || outside_ == 0 || (all <= cpus_ && !has_rivals_)) return acted;
  const uint32_t too_many = all > cpus_ ? all - cpus_ : 1;
  const uint32_t pause = tuning::kFirstNapUs + too_many * tuning::kNapForEachUs / cpus_;
  demand.longest_pause_us.store(pause < tuning::kLongestNapUs ? pause : tuning::kLongestNapUs,
                                std::memory_order_relaxed);
  demand.until.store(now_ + tuning::kDemandBelievedUs * base::cycles_per_microsecond(),
                     std::memory_order_relaxed);
  for (uint32_t i = 0; i < may_poll_; ++i) {
    context::Identity* kernel = who_may_poll_[i];
    if (!wants_cpu(kernel) || make_timer(kernel) != 0) continue;
    kernel->polls_clock = kernel->polls_last_clock;
    if (kernel->polls_patience_ns < (kernel->polls_seen != 0
                                         ? tuning::kMostOutsidePatienceOfPollersNs
                                         : tuning::kMostOutsidePatienceNs))
      kernel->polls_patience_ns *= 2;
    send_tick(kernel);
    acted = true;
  }
  return acted;
}

bool gives_cpu_away_outside(Worker* w, Thread* me, context::Identity* kernel, const Sight& sight) {
  if (base::cycles() >= demand.until.load(std::memory_order_relaxed)) return false;
  const uintptr_t pc = sight.pc;
  const uint64_t state = sight.state;
  // The same instructions alone prove nothing here: they may be a function that others call, too.
  uint64_t* const states = kernel->poll_states;
  const bool is_known = polling_loops.has(block_of_code(pc));
  const bool trusted = is_known && (state == states[0] || state == states[1]) &&
                       !w->probe.watches(me) && ++w->trusted % tuning::kVerifiedEvery != 0;
  switch (probe_at_tick(w, me, kernel, sight, trusted)) {
    case SpinProbe::Verdict::kComputes:
      if (is_known) note_computing(w, me, pc);
      return false;
    case SpinProbe::Verdict::kLookAgain:
      return true;
    case SpinProbe::Verdict::kSpins:
      break;
  }
  if (!trusted) w->doubts = 0;
  polling_loops.note(block_of_code(pc));
  const uint32_t polls = kernel->polls_outside.load(std::memory_order_relaxed) + 1;
  kernel->polls_outside.store(polls != 0 ? polls : 1, std::memory_order_relaxed);
  // In another state than the last times, or after a region, it has got on. A loop of several instructions has two or three states.
  const bool gets_on =
      (state != states[0] && state != states[1]) || me->flat_regions != kernel->poll_region;
  kernel->poll_region = me->flat_regions;
  if (state != states[0]) {
    states[1] = states[0];
    states[0] = state;
  }
  const uint32_t pause = gets_on ? tuning::kFirstNapUs : 2 * kernel->poll_pause_us;
  const uint32_t longest = demand.longest_pause_us.load(std::memory_order_relaxed);
  kernel->poll_pause_us = pause < longest ? pause : longest;
  kernel->poll_pause_due = true;
  add_seen(&w->counts.outside_pauses);
  return true;
}

void pause_outside(context::Identity* kernel) {
  kernel->poll_pause_due = false;
  // Not by yields: who yields all the time is a load of this CPU to the kernel, and those who want one stay together on another.
  static constinit std::atomic<uint32_t> nobody_wakes{0};
  const timespec time{0, static_cast<long>(kernel->poll_pause_us) * 1000};
  base::futex_wait(&nobody_wakes, 0, &time);
  set_slice(kernel, tuning::kBetweenNapsNs);
}

}  // namespace bosk::sched
