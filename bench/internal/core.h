// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the measurements of the core share: a region without OpenMP around it, opened, served and
// joined by the calls that omp/team.cpp and omp/member.cpp make; and threads that no bubble holds.
#pragma once

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <vector>

#include "../programs/bench.h"
#include "sched/configuration.h"
#include "sched/ghost_identity.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"

namespace bench {

using namespace bosk;

constexpr uint32_t kPreemptPeriodUs = 10'000;

inline sched::Thread* attach() {
  sched::set_configure_hook([](sched::Configuration* configuration) {
    configuration->worker_limit = 1;
    configuration->preempt_period_us = kPreemptPeriodUs;
  });
  if (context::provider() != context::Provider::kDonors)
    bench_fail("identities cannot be switched here");
  return sched::attach_calling_thread();
}

inline double ns_of_cycles(uint64_t cycles) {
  return static_cast<double>(cycles) * 1e3 / static_cast<double>(base::cycles_per_microsecond());
}

// Median ns per unit of many short samples: all that is measured here takes nanoseconds, and a sample
// of 50 us is seldom interrupted by other processes, where one of milliseconds often is.
inline double measure_short(BenchRun run, void* context) {
  constexpr double kSampleNs = 50'000;
  long count = bench_warm_up(run, context);
  double took = run(context, count);
  count = static_cast<long>(static_cast<double>(count) * kSampleNs / took) + 1;
  std::vector<double> samples;
  samples.reserve(10'000);
  const double end = now_ns() + int{kBenchSamples} * bench_sample_ns();
  while (now_ns() < end && samples.size() < samples.capacity())
    samples.push_back(run(context, count) / static_cast<double>(count));
  return bench_median(samples.data(), static_cast<int>(samples.size()));
}

// How a region's ghosts run, as omp::IdentityNeeds.
enum class Ghosts : uint8_t { kRelaxed, kStrict, kOwnStacks };

struct Region : sched::Bubble {
  void (*body)(Region* region, sched::Thread* me) = nullptr;  // of every ghost; preemption is on
  void* data = nullptr;
  Ghosts how = Ghosts::kRelaxed;
};

inline uint32_t serve_strict(Region* region, sched::Thread* me, sched::Claim claim) {
  context::Identity* const home = me->identity;
  context::Identity* first = nullptr;
  context::Identity* last = nullptr;
  uint32_t ran = 0;
  sched::enter(me);
  for (; claim; claim = region->ghosts.claim(1)) {
    context::Identity* identity = sched::fresh_identity(me);
    identity->next = first;
    first = identity;
    if (last == nullptr) last = identity;
    sched::install_identity(me, identity);
    me->bubble = region;
    sched::leave(me);
    region->body(region, me);
    sched::enter(me);
    ++ran;
  }
  if (me->identity != home) {
    me->run_as(home);
    context::set_thread_pointer(home->thread_pointer);
  }
  if (first != nullptr) sched::hold_identities(region, first, last);
  sched::leave(me);
  return ran;
}

inline sched::Served serve(sched::Bubble* bubble, sched::Thread* me, sched::Claim claim,
                           context::FloatControl) {
  auto* region = static_cast<Region*>(bubble);
  sched::Bubble* outer = me->bubble;
  uint32_t ran = 0;
  if (region->how == Ghosts::kStrict) {
    ran = serve_strict(region, me, claim);
  } else {
    for (; claim; claim = region->ghosts.claim(1)) {
      me->bubble = region;
      region->body(region, me);
      ++ran;
    }
  }
  me->bubble = outer;
  return {ran};
}

inline void serve_assigned(sched::Bubble* bubble, sched::Thread* me, uint32_t) {
  auto* region = static_cast<Region*>(bubble);
  me->bubble = region;
  region->body(region, me);
}

// The opener is member 0 and has no body. Preemption is off before and after.
inline void open(sched::Thread* me, Region* region, uint32_t size) {
  sched::Worker* w = me->worker;
  region->parent = me->bubble;
  region->depth = me->bubble != nullptr ? me->bubble->depth + 1 : 1;
  region->opener = me;
  region->home = w;
  region->size = size;
  region->meeting.reset();
  region->queued_work.store(0, std::memory_order_relaxed);
  region->serve = serve;
  region->serve_assigned = serve_assigned;
  region->own_stacks = region->how == Ghosts::kOwnStacks;
  region->pending.open(size);
  region->ghosts.open(size, 1);
  sched::publish_bubble(w, region);
  sched::arm_timer(w);
}

inline void join(sched::Thread* me, Region* region) {
  uint32_t own = 1;
  if (sched::may_serve_here(me) && region->how != Ghosts::kOwnStacks) {
    sched::leave(me);
    own += serve(region, me, region->ghosts.claim(1), {}).count;
    sched::enter(me);
  }
  sched::Bubble* outer = me->bubble;
  me->bubble = region;
  if (own != region->size)
    while (!sched::join_bubble(me, region, own)) own = 0;
  sched::retire_bubble(me->worker, region);
  if (region->how != Ghosts::kRelaxed) sched::release_identities(me->worker, region);
  me->bubble = outer;
}

// A region object as teams have them: recycled by the worker, allocated the first time.
inline Region* take_region(sched::Worker* w) {
  if (w->free_bubbles == nullptr) return new Region;
  auto* region = static_cast<Region*>(w->free_bubbles);
  w->free_bubbles = region->next_free;
  return region;
}
inline void give_region(sched::Worker* w, Region* region) {
  region->next_free = w->free_bubbles;
  w->free_bubbles = region;
}

// Opens a region of `ghosts` ghosts and joins it. Called with preemption on.
inline void run_region(sched::Thread* me, Ghosts how, uint32_t ghosts,
                       void (*body)(Region*, sched::Thread*), void* data) {
  sched::Worker* w = sched::enter(me);
  Region* region = take_region(w);
  region->how = how;
  region->body = body;
  region->data = data;
  open(me, region, ghosts + 1);
  join(me, region);
  give_region(me->worker, region);
  sched::leave(me);
}

// Calls `function` in a child, so that what it measures begins with a process that never met the
// core. The function attaches by itself.
inline double in_child(double (*function)()) {
  int ends[2];
  if (pipe(ends) != 0) bench_fail("pipe failed");
  fflush(stdout);
  const pid_t child = fork();
  if (child < 0) bench_fail("fork failed");
  if (child == 0) {
    const double value = function();
    const bool told = write(ends[1], &value, sizeof value) == sizeof value;
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  double value = 0;
  const bool read_all = read(ends[0], &value, sizeof value) == sizeof value;
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!read_all || status != 0) bench_fail("a measurement in a child process failed");
  return value;
}

}  // namespace bench
