// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which faults the kernel's balancing has caused: they tell of reads as well.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "affinity/observer/observed_process.h"
#include "affinity/page_table.h"

namespace bosk::affinity {

/// The kernel takes memory away from who uses it, to see by a fault who that is. Whatever is there already, and is not armed, has faults for that reason only (or it
/// was given back and is touched anew, by who uses it from now on). A huge page has one at a time, anywhere in it. One owner.
class HintFaults {
 public:
  explicit HintFaults(PageTable* pages) : pages_(pages) {}

  /// Of a fault at an address that is not armed, before the table knows of it; asked of each. `key`: what the table knows it by. O(1).
  bool is_one(ObservedProcess* process, uint64_t address, uint64_t key);

 private:
  /// Of 2 MiB that had a fault: when it was asked whether they are a huge page, and the answer.
  struct Faulted {
    double asked = 0;
    bool is_huge = false;
  };
  PageTable* pages_;
  std::unordered_map<uint64_t, Faulted> faulted_;
};

}  // namespace bosk::affinity
