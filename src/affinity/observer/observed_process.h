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
#include "affinity/observer/process_memory.h"
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
  /// `counts_faults`: there are no events of faults, so threads are told by their counts.
  ObservedProcess(Hellos::Hello hello, uint16_t space, const WriteProtection::Shape& shape,
                  bool counts_faults);

  pid_t number() const { return number_; }
  /// Where an address is. False: it is not known to be mapped, or not to be told (a stack is).
  bool locate(uint64_t address, uint64_t* place, uint16_t* space) const;

  /// Reads what is mapped, and which threads there are. False: it has ended. `ended`: of each thread that has.
  bool look_again(const std::function<uint16_t(const MappedArea&)>& space_of,
                  const std::function<void(uint32_t thread)>& ended);
  /// ns of CPUs since the last call; 0: it has ended.
  uint64_t cpu_time_since();

  WriteProtection* protection() { return protection_.get(); }
  FaultCounts* counts() { return counts_.get(); }
  bool is_mapped() const { return is_mapped_; }
  /// From now on nothing is armed in it; what was registered is free again.
  void set_gone() { protection_.reset(); }
  /// As set_gone(), and for good.
  void leave_alone();
  /// It was found to have a userfaultfd itself, and is left alone.
  bool has_its_own() const { return has_its_own_; }

 private:
  pid_t number_;
  uint16_t space_;
  FileDescriptor userfaultfd_;  ///< until it is looked at for the first time
  WriteProtection::Shape shape_;
  std::unique_ptr<WriteProtection> protection_;
  std::unique_ptr<FaultCounts> counts_;
  std::vector<MappedArea> areas_;
  std::vector<uint16_t> spaces_;  ///< of areas_
  uint64_t cpu_time_ = 0;
  bool is_mapped_ = false;
  bool has_its_own_ = false;
};

}  // namespace bosk::affinity
