// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is mapped in a process that is observed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace bosk::affinity {

struct MappedArea {
  /// How it may be write-protected.
  enum class Armed : uint8_t {
    kNever,    ///< not to be written to, a stack, a device, of the kernel's
    kAsOne,    ///< plain memory with a file below it: a library's data, memory that is shared
    kWithAll,  ///< the process' own, with nothing below
  };
  uint64_t begin;
  uint64_t end;
  uint64_t offset;  ///< in the file, where it is shared
  uint64_t device;  ///< of that file
  uint64_t inode;   ///< 0: the memory is the process' own
  Armed armed;

  bool is_shared() const { return inode != 0; }
  bool may_be_armed() const { return armed != Armed::kNever; }
  uint64_t bytes() const { return end - begin; }
};

/// A line of /proc/PID/maps. False: not such a line.
bool parse_mapping(std::string_view line, MappedArea* area);

/// In the order of addresses. Empty: the process has ended, or may not be looked at. O(mappings): some .2 µs each, in the kernel.
std::vector<MappedArea> mapped_areas(pid_t process);

/// The area around the address; null: none.
const MappedArea* find_area(const std::vector<MappedArea>& areas, uint64_t address);

struct Range {
  uint64_t begin;
  uint64_t end;
  bool operator==(const Range&) const = default;
};

/// What to register with a userfaultfd so that no mapping is ever cut in two, whatever the process maps and unmaps since `areas` were read: a program may
/// mremap() a mapping of its own only while it is one. So all memory of kWithAll between two other mappings goes as one range, with the holes in it;
/// and only beside mappings that were there already at the look before (`before`), which do not come and go. O(areas).
std::vector<Range> ranges_to_register(const std::vector<MappedArea>& before,
                                      const std::vector<MappedArea>& areas);

/// What a line of FOLDER/status says, as "State" in /proc/PID or /proc/PID/task/TID. Empty: there is no such line.
std::string status_line(const std::string& folder, const std::string& name);

/// Has it a file open of which `is_one` says that it is one, by what the link in /proc/PID/fd says (the first 64 bytes)? O(open files), of which the first 4,096 are looked
/// at.
bool has_open(pid_t process, const std::function<bool(std::string_view target)>& is_one);
/// Has it a userfaultfd of its own open? Then its memory is not ours to register: the kernel lets one have it.
bool has_userfaultfd(pid_t process);

}  // namespace bosk::affinity
