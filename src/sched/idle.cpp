// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Idle workers: polling, telling them about work, sleeping.
#include <time.h>

#include "base/settings.h"
#include "sched/homes.h"
#include "sched/monitor.h"
#include "sched/scheduler.h"
#include "sched/task_calls.h"

namespace bosk::sched {
namespace {

/// Polls between two looks at other workers' lists: each look takes their lines away from them.
constexpr uint32_t kLookEvery = 64;
/// Two ticks.
constexpr uint64_t kFollowUs = 20'000;

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

bool condition_holds(Worker* w) { return w->native_condition.holds(w->native); }

bool own_work(Worker* w) {
  return w->mail.load(std::memory_order_relaxed) != nullptr || !w->ready.empty_hint() ||
         (w->groups != nullptr && a_group_is_open(w)) || ended_that_may_help(w) != nullptr ||
         has_entities(w);
}

/// What was opened here and is for another node, which has adopted it.
bool has_adopted_ghosts(Worker* w, Far far) {
  const Bubble* bubble = newest_open_bubble(w);
  return bubble != nullptr && is_for_adopter(w, bubble) && (far == Far::kEver || may_break_up(w));
}

/// `is_far`: it waits on another node, or for one.
bool others_work(Worker* w, Far far, bool* is_far) {
  if (BOSK_UNLIKELY(has_adopted_ghosts(w, far))) {
    *is_far = true;
    return true;
  }
  return find_bubble(w, far, is_far) != nullptr || others_have_ready_thread(w, far, is_far);
}

bool others_work(Worker* w, bool* is_far) { return others_work(w, Far::kIfItIsTime, is_far); }

/// Does something wait on another node that it must not take yet? Then it does not sleep.
bool waits_for_far_work(Worker* w) {
  bool is_far;
  return !may_break_up(w) && others_work(w, Far::kEver, &is_far);
}

/// Has somebody called it for ghosts of another node?
bool called_far(const Worker* w) {
  const Bubble* bubble = w->mail.load(std::memory_order_acquire);
  return bubble != nullptr && bubble != kLookAround && bubble != kLookAfar && !is_near(w, bubble);
}

/// If it is too early for that: it is awake now, and comes when it is time if there is still something to do.
bool puts_call_off(Worker* w) {
  if (!called_far(w) || may_go_far(w)) return false;
  // relaxed: only who takes the next announcement writes there again.
  w->mail.store(nullptr, std::memory_order_relaxed);
  return true;
}

void begin_far_wait(Worker* w) {
  // A worker begins when the first teams open, and what these touch they use later.
  constexpr uint64_t kFreshUs = 10'000;
  constexpr uint64_t kMostUs = 100'000;
  const uint64_t us = base::cycles_per_microsecond();
  const uint64_t now = base::cycles();
  if (BOSK_UNLIKELY(base::settings().selftest_move_teams)) {
    // At any moment: none, or some microseconds.
    const uint64_t any = (now >> 4) % 32 * us;
    w->far_wait.begin(now, any, any);
    return;
  }
  w->far_wait.begin(now, kFreshUs * us, kMostUs * us);
}

/// `found_far`: that is what it goes for.
void end_far_wait(Worker* w, bool found_far) {
  const bool called = called_far(w);
  w->far_wait.end(base::cycles(), found_far || called);
  // What it is called for it takes without looking at the time again.
  if (called) w->far_wait.taken();
}

/// relaxed: see there.
Rescue rescue(Worker* w) {
  if (BOSK_LIKELY(!ticks_may_miss.load(std::memory_order_relaxed))) return Rescue::kNothing;
  const EntitySource* source = entities_of(w);
  return source != nullptr ? source->rescue(w) : Rescue::kNothing;
}

/// Whom to tell first: who is near to the home of the bubble's next ghost.
WorkerOrder order_of_helpers(const Worker* w, const Bubble* bubble, uint32_t workers) {
  const topology::Machine* machine = w->pool->machine.load(std::memory_order_acquire);
  if (machine == nullptr || bubble == kLookAround) return order_from(w, w->index + 1, workers);
  const topology::Domain& home = machine->domain_array[bubble->next_home];
  // Around this worker, if it is at home there itself.
  return home.contains_pu(pu_of(w->pool, *machine, w->index))
             ? order_from(w, 0, workers)
             : WorkerOrder(*machine, home, workers, seated_workers(w->pool));
}

/// Takes back the announcement; false: somebody has taken it and sends (or has sent) mail.
void withdraw(Worker* w) {
  if (w->idle.load(std::memory_order_relaxed) != 0 &&
      w->idle.exchange(0, std::memory_order_acq_rel) != 0)
    w->pool->idle_count.fetch_sub(1, std::memory_order_relaxed);
}

void announce(Worker* w) {
  if (w->idle.load(std::memory_order_relaxed) != 0) return;
  w->idle.store(1, std::memory_order_relaxed);
  w->pool->idle_count.fetch_add(1, std::memory_order_seq_cst);
}

/// The team that the native thread waits in, while it can go on.
const Bubble* awaited_team(const Worker* w) {
  return w->native_condition.is_set() ? w->help_root.load(std::memory_order_relaxed) : nullptr;
}

void park(Worker* w) {
  Pool* pool = w->pool;
  announce(w);
  begin_sleep(w, awaited_team(w));
  pool->parked.fetch_add(1, std::memory_order_relaxed);
  w->spot.prepare();
  // After the barrier in prepare(): whoever published before sees us asleep, or we see what it has.
  bool is_far;
  if (condition_holds(w) || own_work(w) || others_work(w, Far::kEver, &is_far) ||
      rescue(w) != Rescue::kNothing || w->call.is_called()) {
    w->spot.cancel();
  } else {
    const uint64_t from = now_ns();
    w->spot.sleep();
    part_from_waker(w);
    // Who is woken is put where the kernel likes, often beside who woke it.
    if (BOSK_UNLIKELY(pool->keeps_nodes.load(std::memory_order_relaxed)))
      look_where_nodes_are_kept(w);
    else
      look_if_due(w, base::cycles());
    note_sleep(w, now_ns() - from);
  }
  pool->parked.fetch_sub(1, std::memory_order_relaxed);
  end_sleep(w);
}

}  // namespace

bool idle_until_work(Worker* w, bool sleep_at_once) {
  Pool* pool = w->pool;
  bool condition = false;
  bool look =
      true;  // once at the start: work may have been published before we announced ourselves
  // More kernel threads than processors: polling takes time from those who work.
  const bool crowded = pool->worker_count.load(std::memory_order_relaxed) > pool->worker_limit;
  const uint64_t spin_cycles = crowded ? 0 : pool->spin_cycles;
  uint64_t start = 0, last_look = 0;
  bool is_far = false;
  // Where teams are placed it leaves the ghosts of other nodes alone for a while. relaxed: the machine is not read.
  const bool placed = pool->machine.load(std::memory_order_relaxed) != nullptr;
  if (BOSK_UNLIKELY(placed)) begin_far_wait(w);
  // Ticks that meet it here are lost. relaxed: a preference.
  if (BOSK_UNLIKELY(pool->keeps_nodes.load(std::memory_order_relaxed)))
    look_where_nodes_are_kept(w);
  for (uint32_t i = 0;; ++i) {
    if (condition_holds(w)) {
      condition = true;
      break;
    }
    if (own_work(w)) {
      if (BOSK_LIKELY(!placed) || !puts_call_off(w)) break;
      continue;
    }
    announce(w);
    if (look && others_work(w, &is_far)) break;
    look = false;
    if (BOSK_UNLIKELY(sleep_at_once)) {
      park(w);
      sleep_at_once = false;
      continue;
    }
    base::cpu_pause();
    if (i % kLookEvery == kLookEvery - 1) {
      const uint64_t now = base::cycles();
      const uint64_t us = base::cycles_per_microsecond();
      if (start == 0)
        start = now;
      else if (BOSK_UNLIKELY(pool->rivals.note_gap(now, now - last_look, us)))
        tell_monitor();  // these may be threads of this process that poll
      last_look = now;
      if (others_work(w, &is_far)) break;
      look_if_due(w, now);
      if (const EntitySource* source = entities_of(w); BOSK_UNLIKELY(source != nullptr))
        if (source->idle(w)) break;
      // Whoever is waited for may have lost its CPU to this very loop: soon at first, for then a wait
      // is short when two kernel threads share a CPU, seldom later, when it is likely to be in vain.
      const uint32_t polls = i + 1;
      if (!crowded &&
          ((polls >= 4 * kLookEvery && (polls & i) == 0) || polls % (16 * kLookEvery) == 0)) {
        base::raw_syscall(SYS_sched_yield);
        if (BOSK_UNLIKELY(rescue(w) == Rescue::kDone)) break;
      }
      if ((now - start > pool->rivals.poll(now, spin_cycles, us) ||
           BOSK_UNLIKELY(pool->group->sleeps_at_once.load(std::memory_order_relaxed))) &&
          !(BOSK_UNLIKELY(placed) && waits_for_far_work(w))) {
        park(w);
        start = 0;
      }
    }
  }
  withdraw(w);
  if (BOSK_UNLIKELY(w->called_for != nullptr) && condition)
    answer_call_by_native(w, awaited_team(w));
  if (BOSK_UNLIKELY(placed)) end_far_wait(w, is_far);
  return condition;
}

void offer_slow(Worker* w, Bubble* bubble) {
  Pool* pool = w->pool;
  if (bubble != kLookAround && w->offer_pause != 0 &&
      pool->parked.load(std::memory_order_relaxed) == 0) {
    --w->offer_pause;
    return;
  }
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  WorkerOrder order = order_of_helpers(w, bubble, workers);
  for (uint32_t helper; (helper = order.next()) != WorkerOrder::kEnd;) {
    Worker* target = pool->worker(helper);
    if (target == nullptr || target == w || target->idle.load(std::memory_order_relaxed) == 0)
      continue;
    if (bubble != kLookAround && !may_take(target, bubble)) continue;
    if (target->idle.exchange(0, std::memory_order_acq_rel) == 0) continue;
    pool->idle_count.fetch_sub(1, std::memory_order_relaxed);
    w->offered = bubble;
    target->mail.store(bubble, std::memory_order_release);
    wake_worker(target);
    return;
  }
}

namespace {

/// Takes the worker's announcement, if it idles, and makes it look.
bool call(Pool* pool, const Worker* w, Worker* target, Bubble* where) {
  if (target == nullptr || target == w || target->idle.load(std::memory_order_relaxed) == 0 ||
      target->idle.exchange(0, std::memory_order_acq_rel) == 0)
    return false;
  pool->idle_count.fetch_sub(1, std::memory_order_relaxed);
  target->mail.store(where, std::memory_order_release);
  wake_worker(target);
  return true;
}

}  // namespace

bool call_if_idle(const Worker* w, Worker* other) { return call(w->pool, w, other, kLookAround); }

void call_mates(Worker* w, uint32_t count, uint32_t others) {
  if (count + others == 0) return;
  // As in offer(): the share is open, and who goes to sleep looks around once more.
  base::StdAtomics::light_barrier();
  Pool* pool = w->pool;
  if (pool->idle_count.load(std::memory_order_relaxed) == 0) return;
  const uint64_t node = node_of_worker(w);
  WorkerOrder order = order_from(w, 0, pool->worker_count.load(std::memory_order_acquire));
  const uint64_t until = base::cycles() + kFollowUs * base::cycles_per_microsecond();
  for (uint32_t at; count + others != 0 && (at = order.next()) != WorkerOrder::kEnd;) {
    Worker* target = pool->worker(at);
    if (target == nullptr || target == w) continue;
    // By distance: the first one of another node has none of this behind it.
    if (node_of_worker(target) != node) return;
    if (count != 0 && call(pool, w, target, kLookAround)) {
      --count;
    } else if (others != 0 && target->idle.load(std::memory_order_relaxed) != 0) {
      target->stays_until.store(until, std::memory_order_relaxed);
      --others;
    }
  }
}

void call_from_afar(Pool* pool, const Worker* w, const topology::Machine& machine,
                    const topology::Domain& domain) {
  if (pool->idle_count.load(std::memory_order_relaxed) == 0) return;
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  WorkerOrder order(machine, domain, workers, nullptr);
  for (uint32_t at; (at = order.next()) != WorkerOrder::kEnd;)
    if (call(pool, w, pool->worker(at), kLookAfar)) return;
}

uint32_t call_for_entities(Pool* pool, Worker* w, uint32_t first_pu, uint32_t last_pu,
                           uint32_t n_pus, uint32_t count) {
  // As in offer(): the entity is queued, and who goes to sleep looks at its queues once more.
  base::StdAtomics::light_barrier();
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  // Worker i is PU i; what is too many goes round, on either side.
  const uint32_t stride = workers < n_pus ? workers : n_pus;
  const uint32_t pus = last_pu - first_pu + 1;
  const uint32_t covered = pus < stride ? pus : stride;
  // Beginning with the caller's neighbour, so that not all callers disturb the same worker.
  const uint32_t start = w != nullptr ? w->index + 1 : 0;
  uint32_t ticks = 0;
  const bool idle = pool->idle_count.load(std::memory_order_relaxed) != 0;
  if (idle) {
    for (uint32_t i = 0; i < covered && count != 0; ++i) {
      const uint32_t pu = first_pu + (start + i) % pus;
      for (uint32_t at = pu % stride; at < workers && count != 0; at += stride) {
        if (call(pool, w, pool->worker(at), kLookAround)) --count;
      }
    }
    if (count == 0) return 0;
  }
  // Nobody is free: somebody who covers these PUs must look up now and then.
  constexpr uint32_t kMostTicks = 4;
  for (uint32_t i = 0; i < covered && ticks < kMostTicks; ++i) {
    Worker* target = pool->worker((first_pu + (start + pus - 1 + i) % pus) % stride);
    if (target == nullptr) continue;
    ++ticks;
    if (target == w) {
      // It is ours, and its thread may be preempted: the others need not be disturbed.
      arm_timer(w);
      break;
    }
    note_ready(target);
  }
  return count;
}

void wake_all_parked(Pool* pool) {
  base::StdAtomics::light_barrier();
  if (pool->parked.load(std::memory_order_relaxed) == 0) return;
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < workers; ++i)
    if (Worker* w = pool->worker(i)) wake_worker(w);
}

}  // namespace bosk::sched
