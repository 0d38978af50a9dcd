// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CPU time by account: while a region is metered, every worker knows whose time it spends.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

struct Thread;
struct Worker;

/// Where CPU time is added up in ns, of one metered region; out of date when that has ended.
struct Account {
  std::atomic<uint64_t>* spent = nullptr;
  uint64_t epoch = 0;
};

namespace detail {
/// Number of the region that is metered now; 0: none. At most one in the process.
extern std::atomic<uint64_t> metered_region;
}  // namespace detail

inline bool metering() {
  // relaxed: who learns of it late is not counted.
  return detail::metered_region.load(std::memory_order_relaxed) != 0;
}

/// Begins to meter a region; its epoch, or 0 if another one is metered.
uint64_t start_metering();
void stop_metering();
bool is_open(const Account& account);

/// The worker goes on with `next`, or next's account has changed: what has passed since the last call goes
/// to the account that was then the worker's. With preemption off.
void meter(Worker* w, const Thread* next);

}  // namespace bosk::sched
