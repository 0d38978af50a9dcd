// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cache accesses and misses of the kernel threads that play workers, as the hardware counts them.
#pragma once

#include "base/cache_counter.h"

namespace bosk::sched {

struct Worker;

/// So far, of the calling kernel thread, which plays the worker. False: nothing is known; it is not the one that played a worker of
/// this number first, or there is no counter. Preemption is off. Three system calls, the first time some more.
bool read_worker_caches(const Worker* w, base::CacheCount* count);

/// Would it say anything?
bool can_read_caches();

/// In a forked child: the counters are the parent's.
void forget_worker_caches();

/// For tests: who is asked instead. Before anybody is.
using CacheReader = bool (*)(const Worker* w, base::CacheCount* count);
void set_cache_reader(CacheReader reader);

}  // namespace bosk::sched
