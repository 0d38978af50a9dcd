// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Talks to perf_event_open(2).
#include "base/cache_counter.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "base/syscalls.h"

namespace bosk::base {
namespace {

int open_event(uint32_t type, uint64_t config, int group, int thread) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = type;
  attributes.config = config;
  attributes.read_format =
      PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  constexpr long kAnyCpu = -1;
  return static_cast<int>(raw_syscall(SYS_perf_event_open, address_of(&attributes), thread, kAnyCpu,
                                      group, PERF_FLAG_FD_CLOEXEC));
}

/// 0: it is no event.
uint64_t id_of(int event) {
  uint64_t id = 0;
  return raw_syscall(SYS_ioctl, event, static_cast<long>(PERF_EVENT_IOC_ID), address_of(&id)) == 0
             ? id
             : 0;
}

void close_event(int event, uint64_t id) {
  if (event >= 0 && id != 0 && id_of(event) == id) raw_syscall(SYS_close, event);
}

}  // namespace

bool CacheCounter::open() {
  return open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, PERF_COUNT_HW_CACHE_MISSES);
}

bool CacheCounter::open(uint32_t type, uint64_t accesses_config, uint64_t misses_config,
                        int thread) {
  accesses_ = open_event(type, accesses_config, -1, thread);
  if (accesses_ < 0) return false;
  accesses_id_ = id_of(accesses_);
  misses_ = open_event(type, misses_config, accesses_, thread);
  if (misses_ >= 0) misses_id_ = id_of(misses_);
  if (accesses_id_ != 0 && misses_id_ != 0) return true;
  close();
  return false;
}

bool CacheCounter::read_group(Group* group) const {
  return accesses_ >= 0 && accesses_id_ != 0 && id_of(accesses_) == accesses_id_ &&
         raw_syscall(SYS_read, accesses_, address_of(group), sizeof *group) ==
             static_cast<long>(sizeof *group);
}

bool CacheCounter::read(CacheCount* count) const {
  Group group;
  if (!read_group(&group) || group.enabled_ns != group.running_ns) return false;
  *count = {group.value[0], group.value[1]};
  return true;
}

bool CacheCounter::read_some(CacheCount* count) const {
  Group group;
  if (!read_group(&group)) return false;
  *count = {group.value[0], group.value[1]};
  return true;
}

void CacheCounter::close() {
  close_event(misses_, misses_id_);
  close_event(accesses_, accesses_id_);
  *this = CacheCounter{};
}

}  // namespace bosk::base
