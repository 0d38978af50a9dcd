// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One process that is observed: its memory, its sources, and what time it takes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "affinity/access.h"
#include "affinity/observer/fault_counts.h"
#include "affinity/observer/file_descriptor.h"
#include "affinity/observer/hellos.h"
#include "affinity/observer/means.h"
#include "affinity/observer/process_memory.h"
#include "affinity/observer/soft_dirty.h"
#include "affinity/observer/write_protection.h"

namespace bosk::affinity {

/// Numbers of spaces: one for each process' own memory and for each shared file.
class Spaces {
 public:
  static constexpr uint32_t kMost = UINT16_MAX;

  /// A number that nobody has. When all have been given, those of the oldest go around again; `is_used_again` says so.
  uint16_t fresh(bool* is_used_again);
  /// Of a shared file, the same each time.
  uint16_t of_file(uint64_t device, uint64_t inode, bool* is_used_again);

 private:
  struct File {
    uint64_t device;
    uint64_t inode;
    uint16_t space;
  };
  std::vector<File> files_;
  uint32_t given_ = 0;
};

class ObservedProcess {
 public:
  /// That has said hello.
  ObservedProcess(Hellos::Hello hello, uint16_t space, const WriteProtection::Shape& shape,
                  const Means& means);
  /// That runs already.
  ObservedProcess(pid_t process, uint16_t space, const WriteProtection::Shape& shape,
                  const Means& means);

  pid_t number() const { return number_; }
  /// Where an address is. False: it is not known to be mapped, or not to be told (a stack is).
  bool locate(uint64_t address, uint64_t* place, uint16_t* space) const;

  /// Reads what is mapped, and which threads there are. False: it has ended. `ended`: of each thread that has.
  bool look_again(const std::function<uint16_t(const MappedArea&)>& space_of,
                  const std::function<void(uint32_t thread)>& ended);
  /// ns of CPUs since the last call; 0: it has ended.
  uint64_t cpu_time_since();

  WriteProtection* protection() { return protection_.get(); }
  /// Null: it has no soft-dirty marks, or something better.
  SoftDirty* soft_dirty() { return soft_dirty_.get(); }
  /// As its source knows it.
  bool is_in_huge_page(uint64_t address);
  /// A huge page that we have split and nobody shall join.
  void leave_split(uint64_t address);
  FaultCounts* counts() { return counts_.get(); }
  /// Why it has no userfaultfd: an errno; 0: it has one. EAGAIN: it will be asked again.
  int why_without() const { return why_without_; }
  bool is_mapped() const { return is_mapped_; }
  /// From now on nothing is armed in it; what was registered is free again.
  void set_gone() {
    protection_.reset();
    soft_dirty_.reset();
  }
  /// As set_gone(), and for good.
  void leave_alone();
  /// It was found to have a userfaultfd itself, or to look at its soft-dirty marks, and is left alone.
  bool has_its_own() const { return has_its_own_; }

 private:
  bool is_its_own_watcher() const;
  void look_for_source();
  void lose_memory();

  pid_t number_;
  uint16_t space_;
  Means means_;
  int why_without_;
  FileDescriptor userfaultfd_;  ///< until it is looked at for the first time
  WriteProtection::Shape shape_;
  std::unique_ptr<WriteProtection> protection_;
  std::unique_ptr<SoftDirty> soft_dirty_;
  std::unique_ptr<FaultCounts> counts_;
  std::vector<MappedArea> areas_;
  std::vector<uint16_t> spaces_;  ///< of areas_
  uint64_t cpu_time_ = 0;
  bool was_attached_ = false;
  bool has_source_ = false;  ///< or will have none
  bool is_mapped_ = false;
  bool has_its_own_ = false;
};

}  // namespace bosk::affinity
