// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What preemption costs: one, and the share that it takes of a computation.
#pragma once

#include <signal.h>
#include <time.h>

#include <vector>

#include "context/setxid.h"
#include "core.h"

namespace bench {

// ---- one preemption without the interrupt that causes it: two threads send themselves the signal of
// the timer; whoever gets it is preempted by the other. The sending is not counted.

struct SignalPair {
  bool started = false;
  bool stop = false;
  double ns = 0;
};

inline double send_signals(int signal, long count) {
  const long process = getpid();
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_TIMER;  // by which ticks are told
  const double start = now_ns();
  for (long i = 0; i < count; ++i)
    base::raw_syscall(SYS_rt_tgsigqueueinfo, process, base::thread_id(), signal,
                      base::address_of(&info));
  return now_ns() - start;
}

inline void preempt_each_other(Region* region, sched::Thread*) {
  auto* pair = static_cast<SignalPair*>(region->data);
  if (!pair->started) {
    pair->started = true;
    while (!*const_cast<volatile bool*>(&pair->stop))
      send_signals(context::signal_of_ticks(), 1000);
    return;
  }
  const double both = measure_short(
      [](void*, long count) { return send_signals(context::signal_of_ticks(), count); }, nullptr);
  // An ignored signal passes the same checks of the sender, which a timer does not have to pass.
  const double call =
      measure_short([](void*, long count) { return send_signals(SIGURG, count); }, nullptr);
  pair->ns = both / 2 - call;
  pair->stop = true;
}

inline double preemption_us(sched::Thread* me) {
  SignalPair pair;
  const uint64_t before = me->worker->counts.preemptions;
  run_region(me, Ghosts::kOwnStacks, 2, preempt_each_other, &pair);
  if (me->worker->counts.preemptions - before < 1000) bench_fail("nothing was preempted");
  return pair.ns / 1e3;
}

/// The floor: a signal that finds a handler with nothing in it.
inline double signal_us() {
  const int signal = SIGRTMIN + 5;
  struct sigaction action{};
  action.sa_sigaction = [](int, siginfo_t*, void*) {};
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&action.sa_mask);
  if (sigaction(signal, &action, nullptr) != 0) bench_fail("sigaction failed");
  const auto sent = [](void* number, long count) {
    return send_signals(*static_cast<const int*>(number), count);
  };
  int numbers[] = {signal, SIGURG};
  const double delivered = measure_short(sent, &numbers[0]);
  return (delivered - measure_short(sent, &numbers[1])) / 1e3;
}

// ---- one preemption by the timer: the time between the last look at the clock of the thread that is
// interrupted and the first of the thread that goes on.

struct Takeover {
  std::atomic<sched::Thread*> running{nullptr};
  std::atomic<uint64_t> last{0};
  std::atomic<uint64_t> until{0};
  std::vector<double> gaps;  // room is made beforehand
};

inline void watch_clock(Region* region, sched::Thread* me) {
  auto* takeover = static_cast<Takeover*>(region->data);
  // relaxed: one kernel thread runs both.
  for (uint64_t now = base::cycles(); now < takeover->until.load(std::memory_order_relaxed);
       now = base::cycles()) {
    if (takeover->running.load(std::memory_order_relaxed) == me) {
      takeover->last.store(now, std::memory_order_relaxed);
      continue;
    }
    const uint64_t last = takeover->last.load(std::memory_order_relaxed);
    // A thread that was interrupted just after it read the clock holds an old time.
    if (now < last) continue;
    if (last != 0 && takeover->gaps.size() < takeover->gaps.capacity())
      takeover->gaps.push_back(ns_of_cycles(now - last) / 1e3);
    takeover->last.store(now, std::memory_order_relaxed);
    takeover->running.store(me, std::memory_order_relaxed);
  }
}

inline double preemption_by_timer_us(sched::Thread* me) {
  Takeover takeover;
  takeover.gaps.reserve(10'000);
  const double budget_us = bench_budget_ns() / 1e3;
  takeover.until =
      base::cycles() +
      static_cast<uint64_t>(budget_us * static_cast<double>(base::cycles_per_microsecond()));
  const uint64_t before = me->worker->counts.preemptions;
  run_region(me, Ghosts::kOwnStacks, 2, watch_clock, &takeover);
  const uint64_t preemptions = me->worker->counts.preemptions - before;
  if (preemptions < 3 || takeover.gaps.size() < 3) bench_fail("nothing was preempted");
  return bench_median(takeover.gaps.data(), static_cast<int>(takeover.gaps.size()));
}

// ---- its share of a computation: CPU time of the same work, done by two threads that take turns by
// preemption, and by one without a timer. CPU time, so that other processes do not count; the median
// of pairs, so that both see the same machine.

struct Work {
  std::atomic<long> left{0};
  bool preempted = false;
};

// About 10 us of dependent multiplications.
[[gnu::noinline]] inline void work_a_little() {
  uint64_t x = 1;
  for (int i = 0; i < 6000; ++i) {
    x = x * 6364136223846793005u + 1;
    asm volatile("" : "+r"(x));
  }
}

inline void compute(Region* region, sched::Thread* me) {
  auto* work = static_cast<Work*>(region->data);
  if (!work->preempted) {
    sched::enter(me);
    sched::delete_timer(me->worker->kernel.load(std::memory_order_relaxed));
    sched::leave(me);
  }
  // relaxed: one kernel thread runs all.
  while (work->left.fetch_sub(1, std::memory_order_relaxed) > 0) work_a_little();
}

inline double cpu_ns(sched::Thread* me, bool preempted, long amount) {
  Work work;
  work.left = amount;
  work.preempted = preempted;
  timespec from, to;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  run_region(me, Ghosts::kOwnStacks, preempted ? 2 : 1, compute, &work);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  return static_cast<double>(to.tv_sec - from.tv_sec) * 1e9 +
         static_cast<double>(to.tv_nsec - from.tv_nsec);
}

inline double preemption_share_percent(sched::Thread* me) {
  constexpr int kPairs = 15;
  const double sample = 5 * bench_sample_ns();
  cpu_ns(me, true, 100);
  const long amount = static_cast<long>(sample / (cpu_ns(me, false, 500) / 500)) + 1;
  double shares[kPairs];
  for (int i = 0; i < kPairs; ++i) {
    const bool preempted_first = i % 2 != 0;
    const double first = cpu_ns(me, preempted_first, amount);
    const double second = cpu_ns(me, !preempted_first, amount);
    shares[i] = ((preempted_first ? first / second : second / first) - 1) * 100;
  }
  return bench_median(shares, kPairs);
}

}  // namespace bench
