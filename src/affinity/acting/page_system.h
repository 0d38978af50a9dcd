// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What moving another process' pages asks of the kernel; a test has a kernel of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace bosk::affinity {

class PageSystem {
 public:
  virtual ~PageSystem() = default;

  /// move_pages(2): `nodes` are the kernel's numbers; empty: where are they? `status` gets a node or a negative errno for each page. Returns 0 or more,
  /// or a negative errno if nothing was done.
  virtual long move(pid_t process, std::span<const uint64_t> pages, std::span<const int> nodes,
                    std::span<int> status) = 0;
  /// Has the program said itself where this memory is to be (mbind, set_mempolicy, numactl)?
  virtual bool is_placed(pid_t process, uint64_t address, double now_ns) = 0;
  /// Is it a part of a huge page, as far as is known?
  virtual bool is_huge(pid_t process, uint64_t address) = 0;
  /// Has the huge page around go as small ones from now on. False: that is not allowed.
  virtual bool split(pid_t process, uint64_t address) = 0;
  /// The process that has made it, as long as that lives; else another one, or 0.
  virtual pid_t parent_of(pid_t process) = 0;
};

/// The memory policies of a process' mappings, read from /proc/PID/numa_maps.
class MappedPolicies {
 public:
  /// `text`: of such a file.
  explicit MappedPolicies(std::span<const char> text);
  /// Some other policy than the usual one at the address.
  bool is_placed(uint64_t address) const;

 private:
  struct Mapping {
    uint64_t begin;
    bool is_placed;
  };
  std::vector<Mapping> mappings_;  ///< in the order of addresses
};

/// Who knows of huge pages is derived from it.
class Kernel : public PageSystem {
 public:
  long move(pid_t process, std::span<const uint64_t> pages, std::span<const int> nodes,
            std::span<int> status) override;
  /// Policies are read again after a second, and seldom if that takes long: the kernel walks through all memory for them.
  bool is_placed(pid_t process, uint64_t address, double now_ns) override;
  bool is_huge(pid_t, uint64_t) override { return false; }
  bool split(pid_t process, uint64_t address) override;
  pid_t parent_of(pid_t process) override;

 private:
  struct Read {
    MappedPolicies policies;
    double until;
  };
  bool may_move_shared_ = true;
  std::map<pid_t, Read> read_;
};

}  // namespace bosk::affinity
