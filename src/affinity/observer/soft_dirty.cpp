// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/soft_dirty.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "affinity/observer/account.h"
#include "affinity/observer/process_memory.h"

namespace bosk::affinity {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kBlock = uint64_t{2} << 20;
// Of an entry of /proc/PID/pagemap.
constexpr uint64_t kPresent = uint64_t{1} << 63;
constexpr uint64_t kSoftDirty = uint64_t{1} << 55;
/// Blocks that are remembered: 80 bytes each. With more all are forgotten, and learnt again.
constexpr size_t kMostBlocks = size_t{1} << 19;

std::string name_of(pid_t process, const char* file) {
  return "/proc/" + std::to_string(process) + "/" + file;
}

double resident_pages(pid_t process) {
  double size = 0;
  double resident = 0;
  std::ifstream(name_of(process, "statm")) >> size >> resident;
  return resident;
}

}  // namespace

bool SoftDirty::is_there() {
  const FileDescriptor pagemap(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  void* const page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  *static_cast<volatile char*>(page) = 1;
  uint64_t entry = 0;
  const auto at = static_cast<off_t>(reinterpret_cast<uint64_t>(page) / kPage * sizeof entry);
  const bool is_read = pread(pagemap.number(), &entry, sizeof entry, at) == sizeof entry;
  munmap(page, kPage);
  // What is new has the mark, if there are any.
  return is_read && (entry & kSoftDirty) != 0;
}

SoftDirty::SoftDirty(pid_t process)
    : process_(process),
      marks_(open(name_of(process, "clear_refs").c_str(), O_WRONLY | O_CLOEXEC)),
      pagemap_(open(name_of(process, "pagemap").c_str(), O_RDONLY | O_CLOEXEC)),
      expected_faults_(resident_pages(process)) {}

/// Only where it was asked for: a program may have reserved a thousand times what it uses.
void SoftDirty::look_what_is_there() {
  std::array<uint64_t, kPages> entries;
  for (const uint64_t number : asked_) {
    Block& block = blocks_[number];
    block.is_asked = false;
    const ssize_t got = pread(pagemap_.number(), entries.data(), sizeof entries,
                              static_cast<off_t>(number * sizeof entries));
    const size_t there = got < 0 ? 0 : static_cast<size_t>(got) / sizeof entries[0];
    for (size_t page = 0; page < there; ++page)
      if ((entries[page] & kPresent) != 0) block.present.set(page);
  }
  asked_.clear();
}

bool SoftDirty::clear() {
  constexpr char kClearSoftDirty = '4';
  // Between this and what follows is too little for a program to begin to look at its marks, clear them and write.
  if (uses_soft_dirty(process_)) return false;
  const double before = now_ns(CLOCK_THREAD_CPUTIME_ID);
  look_what_is_there();
  if (!std::exchange(is_first_, false)) expected_faults_ = static_cast<double>(faults_);
  faults_ = 0;
  const bool is_cleared = pwrite(marks_.number(), &kClearSoftDirty, 1, 0) == 1;
  clear_ns_ = now_ns(CLOCK_THREAD_CPUTIME_ID) - before;
  return is_cleared;
}

bool SoftDirty::is_write(uint64_t address) {
  ++faults_;
  if (blocks_.size() >= kMostBlocks) {
    blocks_.clear();
    asked_.clear();
  }
  Block& block = blocks_[address / kBlock];
  if (block.present.test(address % kBlock / kPage)) return true;
  if (!block.is_asked) asked_.push_back(address / kBlock);
  block.is_asked = true;
  return false;
}

bool uses_soft_dirty(pid_t process) {
  return has_open(process, [](std::string_view target) { return target.ends_with("/clear_refs"); });
}

}  // namespace bosk::affinity
