// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pair of perf events of the calling kernel thread: cache accesses and those that missed.
#pragma once

#include <stdint.h>

namespace bosk::base {

struct CacheCount {
  uint64_t accesses = 0;
  uint64_t misses = 0;
};

/// Plain data. Opened, read and closed by raw system calls, so with preemption off as well. Counts the
/// kernel thread that opened it, and no time in the kernel: an ordinary user may count no more.
class CacheCounter {
 public:
  /// The hardware's last-level cache. False: there is no such counter, or it is not allowed; many
  /// virtual machines have none.
  bool open();
  /// Any two events that can be counted in one group, for tests.
  bool open(uint32_t type, uint64_t accesses_config, uint64_t misses_config);
  /// False: not counted all the time; other users of the hardware's few counters had their turn.
  bool read(CacheCount* count) const;
  void close();

 private:
  int accesses_ = -1;
  int misses_ = -1;
};

}  // namespace bosk::base
