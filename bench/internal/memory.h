// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Resident memory of ghosts that have not started, and of threads that have. Each measurement runs in
// a process of its own (in_child).
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <vector>

#include "core.h"
#include "sched/address_wait.h"

namespace bench {

// Of the process, exact: the counters of statm are kept per CPU and lag behind.
inline double resident_bytes() {
  static char text[4096];
  const int file = ::open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (got <= 0) bench_fail("cannot read /proc/self/smaps_rollup");
  close(file);
  text[got] = '\0';
  const char* line = strstr(text, "\nRss:");
  if (line == nullptr) bench_fail("no Rss in /proc/self/smaps_rollup");
  return atof(line + 5) * 1024;
}

// Bytes per ghost: what a region of 10^6 ghosts occupies more than one of a few.
inline double ghost_bytes() {
  constexpr uint32_t kFew = 64, kMany = 1'000'000;
  static_assert(kMany < sched::kMaxTeam);
  sched::Thread* me = attach();
  double grown[kBenchSamples];
  for (int sample = -1; sample < kBenchSamples; ++sample) {  // -1: touches what all of them use
    double bytes[2];
    for (int i = 0; i < 2; ++i) {
      sched::Worker* w = sched::enter(me);
      Region* region = take_region(w);
      region->how = Ghosts::kRelaxed;
      region->body = [](Region*, sched::Thread*) {};
      open(me, region, 1 + (i == 0 ? kFew : kMany));
      bytes[i] = resident_bytes();
      join(me, region);
      give_region(me->worker, region);
      sched::leave(me);
    }
    if (sample >= 0) grown[sample] = (bytes[1] - bytes[0]) / (kMany - kFew);
  }
  return bench_median(grown, kBenchSamples);
}

struct Blocked {
  uint32_t count = 0;  // threads that shall block
  std::atomic<uint32_t> started{0};
  std::atomic<uint32_t> all_started{0};
  std::atomic<uint32_t> go{0};
  std::vector<context::Identity*> identities;  // whose stacks are not counted
};

inline void start_and_block(Region* region, sched::Thread* me) {
  auto* blocked = static_cast<Blocked*>(region->data);
  const uint32_t number = blocked->started.fetch_add(1, std::memory_order_relaxed);
  blocked->identities[2 * number] = me->own;
  blocked->identities[2 * number + 1] = me->identity;
  if (number + 1 == blocked->count) {
    blocked->all_started.store(1, std::memory_order_relaxed);
    sched::wake(blocked->all_started, 1);
  }
  while (blocked->go.load(std::memory_order_acquire) == 0) sched::wait_on(blocked->go, 0);
}

// Whole pages of the thread's stack that are resident. The pages at its upper end, with the donor's
// first frames, TLS and control block and our records, count as the thread's. Not start_sp: the donor
// writes that when it parks, perhaps after its identity was lent.
inline double resident_stack(const context::Identity* identity) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t low = (reinterpret_cast<uintptr_t>(identity->stack_low) + page - 1) & -page;
  const uintptr_t high = (identity->thread_pointer - 2 * page) & -page;
  std::vector<unsigned char> in_core((high - low) / page);
  if (mincore(reinterpret_cast<void*>(low), high - low, in_core.data()) != 0)
    bench_fail("mincore failed");
  double bytes = 0;
  for (const unsigned char state : in_core)
    bytes += (state & 1) != 0 ? static_cast<double>(page) : 0;
  return bytes;
}

// Resident bytes without the threads' stacks, while `count` threads are started and blocked.
inline double bytes_with_blocked(sched::Thread* me, Ghosts how, uint32_t count) {
  Blocked blocked;
  blocked.count = count;
  blocked.identities.resize(size_t{2} * count);
  sched::Worker* w = sched::enter(me);
  Region* region = take_region(w);
  region->how = how;
  region->body = start_and_block;
  region->data = &blocked;
  open(me, region, count + 1);
  sched::leave(me);
  while (blocked.all_started.load(std::memory_order_acquire) == 0)
    sched::wait_on(blocked.all_started, 0);
  double bytes = resident_bytes();
  for (size_t i = 0; i < blocked.identities.size(); ++i)
    if (i % 2 == 0 || blocked.identities[i] != blocked.identities[i - 1])
      bytes -= resident_stack(blocked.identities[i]);
  blocked.go.store(1, std::memory_order_release);
  sched::wake(blocked.go, UINT32_MAX);
  sched::enter(me);
  join(me, region);
  give_region(me->worker, region);
  sched::leave(me);
  return bytes;
}

// KiB per started thread, from the difference between many and few.
inline double started_thread_kib(Ghosts how) {
  constexpr uint32_t kFew = 64, kMany = 2064;
  sched::Thread* me = attach();
  const double few = bytes_with_blocked(me, how, kFew);
  const double many = bytes_with_blocked(me, how, kMany);
  return (many - few) / (kMany - kFew) / 1024;
}

}  // namespace bench
