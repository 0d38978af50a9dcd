// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/time_samples.h"

#include <unistd.h>

#include <algorithm>

#include "base/syscalls.h"
#include "sched/clock.h"
#include "sched/pool_list.h"
#include "sched/preemption.h"
#include "sched/service_thread.h"
#include "sched/thread_clock.h"
#include "sched/tuning.h"

namespace bosk::sched {

namespace detail {
constinit std::atomic<bool> sampled{false};
}

namespace {

struct Sampler {
  ServiceThread thread;
  std::atomic<uint32_t> stops{0};  ///< futex, to cut a pause short
  std::atomic<uint32_t> cpus{1};
  std::atomic<void (*)()> hook{nullptr};
  // Under the lock of the pools.
  std::atomic<uint64_t> begun{0};
  uint64_t last = 0;  ///< look
};
constinit Sampler the_sampler;

/// Added to by anybody, read by anybody: relaxed, figures.
struct Sums {
  std::atomic<uint64_t> at[kSampledRegions][kTimeShares];
  std::atomic<uint64_t> all;

  void add(uint32_t region, TimeShare share, uint64_t ns) {
    // Serial time belongs to no region, though the idle workers' last one is known.
    if (share == TimeShare::kSerial || region >= kSampledRegions) region = 0;
    at[region][static_cast<uint32_t>(share)].fetch_add(ns, std::memory_order_relaxed);
    all.fetch_add(ns, std::memory_order_relaxed);
  }
  uint64_t get(uint32_t region, TimeShare share) const {
    return at[region][static_cast<uint32_t>(share)].load(std::memory_order_relaxed);
  }
  void clear() {
    for (auto& region : at)
      for (std::atomic<uint64_t>& sum : region) sum.store(0, std::memory_order_relaxed);
    all.store(0, std::memory_order_relaxed);
  }
};
constinit Sums with_cpu;  ///< time of kernel threads, by looks at what they do
constinit Sums without;   ///< of CPUs that did nothing
constinit Sums samples;   ///< their number

/// What somebody waits for who does nothing himself is the affair of the region that is open in his pool.
Doing seen_doing(const Thread* thread, Doing opener) {
  Doing doing = what_does(thread);
  if (doing.region == 0) doing.region = opener.region;
  return doing;
}

/// How long its kernel thread has had a CPU since the last look. A new one: nothing is known, so nothing.
uint64_t ran_since(Worker* w, uint64_t passed) {
  context::Identity* kernel = w->kernel.load(std::memory_order_acquire);
  const int tid = kernel != nullptr ? kernel->tid : 0;
  if (kernel != nullptr && kernel->samples.load(std::memory_order_relaxed) < 0)
    sample_from_now_on(kernel);
  const uint64_t clock = tid != 0 ? thread_clock_now(tid) : UINT64_MAX;
  const bool same = tid == w->sampled.tid && clock != UINT64_MAX && clock >= w->sampled.clock;
  const uint64_t ran = same ? clock - w->sampled.clock : 0;
  w->sampled.tid = clock != UINT64_MAX ? tid : 0;
  w->sampled.clock = clock;
  return std::min(ran, passed);
}

/// How long the worker has slept because it had nothing to do, since the last look; a sleep counts when it is over.
uint64_t slept_since(Worker* w) {
  const uint64_t slept = std::atomic_ref(w->counts.parked_ns).load(std::memory_order_relaxed);
  const uint64_t since = slept - w->sampled.slept_ns;
  w->sampled.slept_ns = slept;
  return since;
}

bool is_main(const Thread* thread) { return thread->own->tid == getpid(); }

/// Where a thread waits that has a pool of its own, outside of regions, is its own affair: it is main that programs wait for.
bool is_idle_stranger(const Thread* opener, Doing doing, bool is_opener) {
  return doing.what == Does::kSerial && is_opener && !is_main(opener);
}

/// Who opens the pool's regions. Null: not in this pool now.
const Thread* opener_of(const Pool* pool) {
  Thread* opener = pool->worker(0)->native;
  if (opener == nullptr) return nullptr;
  const Worker* w = seen(opener->worker);
  return w == nullptr || w->pool == pool || pool->outer == nullptr ? opener : nullptr;
}

struct Sum {
  uint64_t with_cpu = 0;
  uint64_t without = 0;
  uint32_t workers = 0;  ///< whose time without a CPU counts
};

/// Of those that compute some poll.
void have_it_looked_at(Worker* w, Doing doing) {
  const uint64_t now = the_sampler.last;
  const uint64_t pause = std::clamp((now - the_sampler.begun) / tuning::kLooksOfAge,
                                    tuning::kShortestLookNs, tuning::kLongestLookNs);
  if ((doing.what != Does::kComputing && doing.what != Does::kPolling) ||
      now - w->sampled.looked_at < pause)
    return;
  w->sampled.looked_at = now;
  look_soon(w);
}

/// Adds what it did with a CPU, and notes what it did without.
void look_at(const Pool* pool, Worker* w, uint64_t passed, Sum* sum) {
  w->sampled.missed = 0;
  const Thread* opener = opener_of(pool);
  const Thread* thread = who_runs_on(w);
  if (opener == nullptr || thread == nullptr) return;
  const Doing opener_does = what_does(opener);
  const Doing doing = seen_doing(thread, opener_does);
  const uint64_t ran = ran_since(w, passed);
  const bool is_opener = thread == opener;
  with_cpu.add(doing.region, share_with_cpu(doing, is_opener, opener_does), ran);
  sum->with_cpu += ran;
  // Who was blocked, or without a CPU, for most of the time is not worth it.
  if (ran >= passed / 2) have_it_looked_at(w, doing);
  if (is_idle_stranger(opener, doing, is_opener)) return;
  const TimeShare share = share_without_cpu(doing, is_opener, opener_does);
  w->sampled.missed = passed - ran;
  w->sampled.slept = std::min(slept_since(w), w->sampled.missed);
  if (share != TimeShare::kBlocked) {
    w->sampled.idle = share;
    w->sampled.slept = w->sampled.missed;
  }
  w->sampled.region = doing.region;
  sum->without += w->sampled.missed;
  ++sum->workers;
}

/// Under the lock of the pools.
void look(uint64_t now) {
  const uint64_t passed = now - the_sampler.last;
  the_sampler.last = now;
  Sum sum;
  for_each_worker([&](const Pool* pool, Worker* w) { look_at(pool, w, passed, &sum); });
  const uint64_t idle = idle_of_cpus(passed, the_sampler.cpus.load(std::memory_order_relaxed),
                                     sum.workers, sum.with_cpu);
  if (idle == 0 || sum.without == 0) return;
  const double part = static_cast<double>(idle) / static_cast<double>(sum.without);
  for_each_worker([&](const Pool*, const Worker* w) {
    if (w->sampled.missed == 0) return;
    const auto add = [&](TimeShare share, uint64_t ns) {
      without.add(w->sampled.region, share, static_cast<uint64_t>(part * static_cast<double>(ns)));
    };
    add(w->sampled.idle, w->sampled.slept);
    add(TimeShare::kBlocked, w->sampled.missed - w->sampled.slept);
  });
}

/// Not what others take from it: after a look in which it lost its CPU it would be blind for seconds.
uint64_t own_cpu_time() { return thread_clock_now(0); }

void wait_for(uint64_t ns) {
  const timespec time{static_cast<time_t>(ns / 1'000'000'000u),
                      static_cast<long>(ns % 1'000'000'000u)};
  base::futex_wait(&the_sampler.stops, 0, &time);
}

/// Often at first, so that a short program is seen, too.
uint64_t pause_after(uint64_t age) {
  return std::clamp(age / tuning::kSamplesOfAge, tuning::kShortestSampleNs,
                    tuning::kLongestSampleNs);
}

void watch(ServiceThread& thread) {
#ifdef SYS_close_range
  // As the monitor: descriptors of its own, none; what it opens is not seen by the program.
  constexpr unsigned kUnshare = 1U << 1;
  base::raw_syscall(SYS_close_range, 0, INT32_MAX, kUnshare);
#endif
  uint64_t told = 0;
  while (!thread.is_stopping()) {
    const uint64_t now = clock_now();
    const uint64_t cpu_time = own_cpu_time();
    uint64_t age;
    {
      base::SpinGuard guard(pools.lock);
      look(now);
      age = now - the_sampler.begun;
    }
    const uint64_t cost = own_cpu_time() - cpu_time;
    if (auto* hook = the_sampler.hook.load(std::memory_order_acquire);
        hook != nullptr && now - told >= tuning::kSamplesToldNs) {
      told = now;
      hook();
    }
    wait_for(std::max(pause_after(age), tuning::kSamplePauseOfCost * cost));
  }
}

void kick() {
  the_sampler.stops.store(1, std::memory_order_release);
  base::futex_wake(&the_sampler.stops, 1);
}

}  // namespace

TimeShare share_with_cpu(Doing doing, bool is_opener, Doing opener) {
  const bool outside = opener.what == Does::kSerial;
  switch (doing.what) {
    case Does::kSerial:
      if (is_opener) return TimeShare::kSerial;
      [[fallthrough]];
    case Does::kEnded:
      return outside ? TimeShare::kSerial : TimeShare::kImbalance;
    case Does::kOpening:
      return TimeShare::kRuntime;
    case Does::kComputing:
      return TimeShare::kComputing;
    case Does::kBarrier:
      return TimeShare::kBarrier;
    case Does::kWaiting:
      return TimeShare::kWaiting;
    case Does::kYielding:
      return TimeShare::kYielding;
    case Does::kPolling:
      return TimeShare::kPolling;
  }
  return TimeShare::kComputing;
}

TimeShare share_without_cpu(Doing doing, bool is_opener, Doing opener) {
  const TimeShare share = share_with_cpu(doing, is_opener, opener);
  const bool wants_cpu = share == TimeShare::kComputing || share == TimeShare::kRuntime ||
                         share == TimeShare::kPolling;
  return wants_cpu ? TimeShare::kBlocked : share;
}

uint64_t idle_of_cpus(uint64_t passed, uint32_t cpus, uint32_t workers, uint64_t with_cpu) {
  const uint64_t all = passed * std::min(cpus, workers);
  return all > with_cpu ? all - with_cpu : 0;
}

int ensure_sampling(const Thread* me, uint32_t cpus) {
  if (BOSK_LIKELY(the_sampler.thread.runs())) return 0;
  the_sampler.cpus.store(cpus, std::memory_order_relaxed);
  detail::sampled.store(true, std::memory_order_relaxed);
  return the_sampler.thread.ensure(
      me,
      [] {
        context::preempt_disable();
        pools.lock.lock();
        the_sampler.last = clock_now();
        if (the_sampler.begun == 0) the_sampler.begun = the_sampler.last;
        pools.lock.unlock();
        context::preempt_enable();
        the_sampler.stops.store(0, std::memory_order_relaxed);
        return 0;
      },
      watch);
}

void set_sampling_hook(void (*hook)()) { the_sampler.hook.store(hook, std::memory_order_release); }

void sample_now() {
  // Who holds the lock is not switched out.
  context::preempt_disable();
  {
    base::SpinGuard guard(pools.lock);
    if (the_sampler.begun != 0) look(clock_now());
  }
  context::preempt_enable();
}

void note_sample(const Thread* me) {
  const Doing doing = what_does(me);
  const Worker* w = me->worker;
  const Thread* opener = w != nullptr ? opener_of(w->pool) : nullptr;
  const Doing opener_does = opener != nullptr ? what_does(opener) : doing;
  const Doing seen = seen_doing(me, opener_does);
  samples.add(seen.region, share_with_cpu(seen, me == opener, opener_does), 1);
}

uint64_t sampled_ns(uint32_t region, TimeShare share) {
  const uint64_t idle = without.get(region, share);
  const uint64_t all = samples.all.load(std::memory_order_relaxed);
  if (all < tuning::kFewSamples) return idle + with_cpu.get(region, share);
  const double part = static_cast<double>(samples.get(region, share)) / static_cast<double>(all);
  return idle + static_cast<uint64_t>(
                    part * static_cast<double>(with_cpu.all.load(std::memory_order_relaxed)));
}

uint64_t sampled_since() { return the_sampler.begun.load(std::memory_order_relaxed); }

void stop_sampling() {
  // Whoever opens a region next begins anew.
  if (the_sampler.thread.stop(kick)) detail::sampled.store(false, std::memory_order_relaxed);
}

void sampling_forget_after_fork() {
  the_sampler.thread.forget_after_fork();
  the_sampler.stops.store(0, std::memory_order_relaxed);
  detail::sampled.store(false, std::memory_order_relaxed);
  // The child begins with nothing.
  the_sampler.begun.store(0, std::memory_order_relaxed);
  for (Sums* sums : {&with_cpu, &without, &samples}) sums->clear();
}

}  // namespace bosk::sched
