// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who else moves memory between nodes: the kernel's balancing, memory tiers, numad. They are told of, and not fought.
#pragma once

#include <cstdint>
#include <string>

namespace bosk::affinity {

struct KernelBalancing {
  bool is_on =
      false;  ///< threads' memory is looked at by faults of the kernel's making (kernel.numa_balancing, 1)
  bool has_tiers = false;    ///< memory is moved between fast and slow nodes (2, or demotion)
  bool has_numad = false;    ///< its service runs
  uint64_t hint_faults = 0;  ///< since the machine was started, of all programs
  uint64_t moved_pages = 0;

  KernelBalancing since(const KernelBalancing& before) const {
    KernelBalancing difference = *this;
    difference.hint_faults -= before.hint_faults;
    difference.moved_pages -= before.moved_pages;
    return difference;
  }
};

/// By the files of the kernel's below `root` (a test's; else ""). What cannot be read is off. Some 100 µs.
KernelBalancing look_at_balancing(const std::string& root = "");

}  // namespace bosk::affinity
