// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A source of faults in one process, for kernels before 6.7 and where no userfaultfd is to be had: soft-dirty marks, which are cleared in all of its memory at once.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "affinity/observer/file_descriptor.h"

namespace bosk::affinity {

/// After clear() the first write to each page faults once, and the event of that fault says who it was. Huge pages stay huge. What the memory costs to walk, and all
/// faults that come of it, are the price of one look, so looks are rare where there is much memory: the caller saves up for them.
///
/// One owner, who alone calls it.
class SoftDirty {
 public:
  /// Has this kernel such marks? Debian's have.
  static bool is_there();

  /// Of a process that may be looked at; else every clear() fails.
  explicit SoftDirty(pid_t process);

  /// False: it has ended, is not ours to look at, or looks at its marks itself. O(its memory).
  bool clear();
  /// A fault at the address. True: something was there when the marks were cleared, so it was a write; else it was the first touch, or that is not known yet. O(1).
  bool is_write(uint64_t address);
  /// What the next clear() will cause: so many faults as the last one, at first one for each page that there is.
  double expected_faults() const { return std::max(expected_faults_, static_cast<double>(faults_)); }
  /// Has anybody had a fault since the last one? Else all marks are as it left them.
  bool is_any_use() const { return faults_ != 0 || is_first_; }
  /// What a clear() takes.
  double clear_ns() const { return clear_ns_; }

 private:
  static constexpr size_t kPages = 512;
  /// Which pages of 2 MiB were there at the last clear().
  struct Block {
    std::bitset<kPages> present;
    bool is_asked = false;  ///< it had a fault where nothing was known to be
  };
  void look_what_is_there();

  pid_t process_;
  FileDescriptor marks_;
  FileDescriptor pagemap_;
  std::unordered_map<uint64_t, Block> blocks_;
  std::vector<uint64_t> asked_;
  double expected_faults_ = 0;
  uint64_t faults_ = 0;
  bool is_first_ = true;
  double clear_ns_ = 0;
};

/// Does the process look at its own marks (collectors, checkpoints)? Then they are not ours to clear. O(open files).
bool uses_soft_dirty(pid_t process);

}  // namespace bosk::affinity
