// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the time goes. What threads do with the CPUs is sampled by ticks of each kernel thread's CPU time, in which it looks at what it
// does itself (doing.h): a look from outside comes when somebody has lost his CPU to the one who looks, and what the others do then is
// not what they do at any time. So the program pays by the stores into those words, and some microseconds in 4 ms; a share of p per cent of n
// samples is known to about sqrt(p (100 - p) / n) per cent.
//
// What CPUs did not do is found by a service thread that looks at all workers some hundred times a second: by the clocks of their kernel
// threads, what each missed since the last look, and by its word what for. That matters only as far
// as CPUs were free for it: with more kernel threads than CPUs all of them miss most of the time, and what their CPUs did not do is
// shared out among them. So the sum is that of the CPUs, or of the workers where these are fewer.
//
// The service thread holds the lock of the pools while it looks, as the monitor does: under it no pool comes or goes, and what a worker
// runs is never freed. Cost: about .3 us a worker.
#pragma once

#include <stdint.h>

#include "sched/doing.h"
#include "sched/time_share.h"

namespace bosk::sched {

/// Regions of higher numbers are sampled as region 0.
constexpr uint32_t kSampledRegions = 512;

/// Sees to it that it runs, and that threads say what they do: 0, or an errno value. `cpus`: that the process has. Preemption is on.
int ensure_sampling(const Thread* me, uint32_t cpus);
/// Called by the sampler about ten times a second, without any lock: what is known so far can be kept somewhere. Set once.
void set_sampling_hook(void (*hook)());
/// What has passed since the last look is counted now. Preemption is on.
void sample_now();
/// When that began: clock_now(); 0: not yet.
uint64_t sampled_since();
/// In ns, so far.
uint64_t sampled_ns(uint32_t region, TimeShare share);

/// A tick that comes for a sample, on the kernel thread of `me`, wherever that is.
void note_sample(const Thread* me);

void stop_sampling();
void sampling_forget_after_fork();

// ---- Apart from where it comes from, for tests.

/// Where the time of a worker goes with, and without, a CPU. `is_opener`: it is worker 0 of its pool; `opener`: what that one does.
TimeShare share_with_cpu(Doing doing, bool is_opener, Doing opener);
TimeShare share_without_cpu(Doing doing, bool is_opener, Doing opener);
/// Of `passed` ns the CPUs, as many as there are workers at most, did nothing for so long; `with_cpu`: what all of them did in sum.
uint64_t idle_of_cpus(uint64_t passed, uint32_t cpus, uint32_t workers, uint64_t with_cpu);

}  // namespace bosk::sched
