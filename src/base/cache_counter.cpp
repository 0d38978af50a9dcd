// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Talks to perf_event_open(2).
#include "base/cache_counter.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "base/syscalls.h"

namespace bosk::base {
namespace {

int open_event(uint32_t type, uint64_t config, int group) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = type;
  attributes.config = config;
  attributes.read_format =
      PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  constexpr long kThisThread = 0;
  constexpr long kAnyCpu = -1;
  return static_cast<int>(raw_syscall(SYS_perf_event_open, address_of(&attributes), kThisThread,
                                      kAnyCpu, group, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

bool CacheCounter::open() {
  return open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, PERF_COUNT_HW_CACHE_MISSES);
}

bool CacheCounter::open(uint32_t type, uint64_t accesses_config, uint64_t misses_config) {
  accesses_ = open_event(type, accesses_config, -1);
  if (accesses_ < 0) return false;
  misses_ = open_event(type, misses_config, accesses_);
  if (misses_ >= 0) return true;
  close();
  return false;
}

bool CacheCounter::read(CacheCount* count) const {
  struct {
    uint64_t events;
    uint64_t enabled_ns;
    uint64_t running_ns;
    uint64_t value[2];
  } group;
  if (accesses_ < 0 || raw_syscall(SYS_read, accesses_, address_of(&group), sizeof group) !=
                           static_cast<long>(sizeof group))
    return false;
  if (group.enabled_ns != group.running_ns) return false;
  *count = {group.value[0], group.value[1]};
  return true;
}

void CacheCounter::close() {
  if (misses_ >= 0) raw_syscall(SYS_close, misses_);
  if (accesses_ >= 0) raw_syscall(SYS_close, accesses_);
  accesses_ = misses_ = -1;
}

}  // namespace bosk::base
