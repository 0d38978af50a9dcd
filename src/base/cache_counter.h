// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pair of perf events of a kernel thread, for instance cache accesses and those that missed.
#pragma once

#include <stdint.h>

namespace bosk::base {

struct CacheCount {
  uint64_t accesses = 0;
  uint64_t misses = 0;
};

/// Plain data. Opened, read and closed by raw system calls, so with preemption off as well. Counts one
/// kernel thread, and no time in the kernel: an ordinary user may count no more.
///
/// Programs close descriptors that are not theirs, and then get the number for something of their own: a counter looks
/// whether the number still is its before it reads, which might block or take what is not ours, and before it closes.
class CacheCounter {
 public:
  /// The hardware's last-level cache. False: there is no such counter, or it is not allowed; many
  /// virtual machines have none.
  bool open();
  /// Any two events that can be counted in one group. `thread`: a kernel thread of the process; 0: the caller.
  bool open(uint32_t type, uint64_t accesses_config, uint64_t misses_config, int thread = 0);
  /// False: not counted all the time; other users of the hardware's few counters had their turn.
  bool read(CacheCount* count) const;
  /// What was counted while the pair had its turn: good for how the two compare.
  bool read_some(CacheCount* count) const;
  void close();

 private:
  struct Group {
    uint64_t events;
    uint64_t enabled_ns;
    uint64_t running_ns;
    uint64_t value[2];
  };
  bool read_group(Group* group) const;

  int accesses_ = -1;
  int misses_ = -1;
  uint64_t accesses_id_ = 0;  ///< the kernel's, of the events
  uint64_t misses_id_ = 0;
};

}  // namespace bosk::base
