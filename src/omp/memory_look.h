// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For the report: the memory that the process has of its own, by pages' sizes and by node, as the kernel tells it.
//
// To tell it the kernel walks through all page tables: some 10 ns a page. So it is asked when the process's age has doubled, and for no more
// than a hundredth of the time.
#pragma once

#include <stdint.h>

namespace bosk::omp {

/// Bytes.
struct OwnMemory {
  static constexpr uint32_t kNodes = 64;  ///< those beyond are the last one's
  uint64_t all = 0;
  uint64_t huge = 0;  ///< in huge pages
  uint32_t nodes =
      0;  ///< of which the next are known; 0: the machine has one, or the kernel does not tell
  uint64_t of_node[kNodes] = {};
};

/// One thread at a time.
class MemoryLook {
 public:
  /// The process began at `began`, and it is `now`, in ns. At its end it is always asked.
  void look(uint64_t began, uint64_t now, bool is_end = false);
  /// When it had most.
  const OwnMemory& most() const { return most_; }

 private:
  OwnMemory most_;
  uint64_t next_ = 0;
};

/// Adds what a line of /proc/PID/numa_maps tells of memory that is the process's own.
void add_numa_line(const char* line, OwnMemory* memory);

}  // namespace bosk::omp
