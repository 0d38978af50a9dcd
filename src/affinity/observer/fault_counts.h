// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which thread has faulted, where nobody may have perf's events: each thread's count of minor faults, which everybody may read (/proc/PID/task/TID/stat).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "affinity/observer/file_descriptor.h"

namespace bosk::affinity {

/// What a line of stat says. False: not such a line.
struct ThreadStat {
  uint64_t minor_faults;
  uint16_t cpu;
};
bool parse_thread_stat(std::string_view line, ThreadStat* stat);

/// Of one process. One owner, who alone calls it.
class FaultCounts {
 public:
  struct Faulted {
    uint32_t thread;
    uint16_t cpu;
    uint64_t faults;
  };

  explicit FaultCounts(pid_t process) : process_(process) {}

  /// Finds threads that have begun since. `ended`: of each that has ended. O(threads).
  void find_threads(const std::function<void(uint32_t thread)>& ended);
  /// Which threads have had faults since the last call. Some 3 µs a thread.
  void read(std::vector<Faulted>* faulted);

 private:
  struct Known {
    FileDescriptor stat;
    uint64_t faults = 0;
  };

  pid_t process_;
  std::unordered_map<uint32_t, Known> threads_;
};

}  // namespace bosk::affinity
