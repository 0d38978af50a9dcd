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

/// After clear() the first write to each page faults once, and the event of that fault says who it was. What the memory costs to walk, and all faults that come of it, are the
/// price of one look, so looks are rare where there is much memory: the caller saves up for them.
///
/// A huge page has one fault for all its parts. So some of them are split for some looks, and then joined again (Linux 6.1, CAP_SYS_NICE); meanwhile of small pages no more
/// are told than of huge ones.
///
/// One owner, who alone calls it.
class SoftDirty {
 public:
  enum class Fault : uint8_t {
    kUnknown,  ///< a first touch, or it is not known yet what was there
    kWrite,    ///< something was there when the marks were cleared
    kNotTold,  ///< likewise, where more is seen than elsewhere
  };

  /// Has this kernel such marks? Debian's have.
  static bool is_there();

  /// Of a process that may be looked at; else every clear() fails.
  explicit SoftDirty(pid_t process);

  /// False: it has ended, is not ours to look at, or looks at its marks itself. O(its memory).
  bool clear();
  /// A fault at the address. O(1).
  Fault fault_at(uint64_t address);
  /// What the next clear() will cause: so many faults as the last one, at first one for each page that there is.
  double expected_faults() const {
    return std::max(expected_faults_, static_cast<double>(faults_));
  }
  /// Has anybody had a fault since the last one? Else all marks are as it left them.
  bool is_any_use() const { return faults_ != 0 || is_first_; }
  /// What a clear() takes.
  double clear_ns() const { return clear_ns_; }

  /// Is it a part of a huge page, or would it be but for us? Some µs. False: it is not, or that may not be known (CAP_SYS_ADMIN).
  bool is_in_huge_page(uint64_t address);
  /// Nobody shall join it again.
  void leave_split(uint64_t address);
  /// All that were split are joined.
  void finish();
  uint64_t split() const { return split_; }
  uint64_t joined() const { return joined_; }

 private:
  static constexpr size_t kPages = 512;
  /// 2 MiB, as they were at the last clear().
  struct Block {
    std::bitset<kPages> present;
    bool is_asked = false;  ///< it had a fault where nothing was known to be
    bool is_huge = false;
  };
  struct Split {
    uint64_t block;
    uint32_t rounds;  ///< for which it stays so
  };
  void look_what_is_there();
  bool has_huge_flag(uint64_t entry) const;
  void choose_split();
  bool split(uint64_t block);
  void join(uint64_t block);
  void forget(uint64_t block);
  bool is_split(uint64_t block) const;
  bool is_told(uint64_t block) const;

  pid_t process_;
  FileDescriptor marks_;
  FileDescriptor pagemap_;
  FileDescriptor page_flags_;
  FileDescriptor pidfd_;
  std::unordered_map<uint64_t, Block> blocks_;
  std::vector<uint64_t> asked_;
  std::vector<uint64_t> huge_;  ///< blocks that were so when they were looked at
  std::vector<Split> splits_;
  size_t next_huge_ = 0;
  uint32_t turn_ = 0;     ///< which small pages are told
  double told_part_ = 1;  ///< and how many of them
  bool may_split_ = true;
  uint64_t split_ = 0;
  uint64_t joined_ = 0;
  double expected_faults_ = 0;
  uint64_t faults_ = 0;
  bool is_first_ = true;
  double clear_ns_ = 0;
};

/// Does the process look at its own marks (collectors, checkpoints)? Then they are not ours to clear. O(open files).
bool uses_soft_dirty(pid_t process);

}  // namespace bosk::affinity
