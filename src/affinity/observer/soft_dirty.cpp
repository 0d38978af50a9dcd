// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/soft_dirty.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
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
/// Each costs 512 faults a look while it is split, and half a millisecond to be joined.
constexpr size_t kSplitAtOnce = 8;
constexpr uint32_t kRounds = 32;
constexpr int kMadvCollapse = 25;

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
  void* const page =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
      page_flags_(open("/proc/kpageflags", O_RDONLY | O_CLOEXEC)),
      pidfd_(static_cast<int>(syscall(SYS_pidfd_open, process, 0))),
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
    if (!block.present.all() || block.is_huge || is_split(number) || !has_huge_flag(entries[0]))
      continue;
    block.is_huge = true;
    huge_.push_back(number);
  }
  asked_.clear();
}

/// Of an entry of pagemap, which has the page's number for root.
bool SoftDirty::has_huge_flag(uint64_t entry) const {
  constexpr uint64_t kNumber = (uint64_t{1} << 55) - 1;
  constexpr uint64_t kHugeFlag = uint64_t{1} << 22;  // KPF_THP
  uint64_t flags = 0;
  const uint64_t number = entry & kNumber;
  return (entry & kPresent) != 0 && number != 0 &&
         pread(page_flags_.number(), &flags, sizeof flags,
               static_cast<off_t>(number * sizeof flags)) == sizeof flags &&
         (flags & kHugeFlag) != 0;
}

bool SoftDirty::is_split(uint64_t block) const {
  return std::ranges::find(splits_, block, &Split::block) != splits_.end();
}

/// The kernel splits what is to be made cold in part.
bool SoftDirty::split(uint64_t block) {
  iovec page = {reinterpret_cast<void*>(block * kBlock), kPage};
  if (syscall(SYS_process_madvise, pidfd_.number(), &page, 1, MADV_COLD, 0) < 0) {
    may_split_ = errno != EPERM && errno != ENOSYS && errno != EINVAL;
    return false;
  }
  ++split_;
  return true;
}

void SoftDirty::join(uint64_t block) {
  iovec range = {reinterpret_cast<void*>(block * kBlock), kBlock};
  if (syscall(SYS_process_madvise, pidfd_.number(), &range, 1, kMadvCollapse, 0) >= 0)
    ++joined_;
  else if (errno == EPERM || errno == EINVAL)
    may_split_ = false;  // it stays so until the kernel joins it itself; no more are split
}

/// In turn, each for some rounds.
void SoftDirty::choose_split() {
  std::erase_if(splits_, [&](Split& split) {
    if (--split.rounds != 0) return false;
    join(split.block);
    return true;
  });
  const size_t wanted = std::min(kSplitAtOnce, huge_.size());
  for (size_t tries = 0; may_split_ && splits_.size() < wanted && tries < 2 * wanted; ++tries) {
    if (next_huge_ >= huge_.size()) next_huge_ = 0;
    const uint64_t block = huge_[next_huge_++];
    uint64_t entry = 0;
    if (is_split(block)) continue;
    const bool is_there = pread(pagemap_.number(), &entry, sizeof entry,
                                static_cast<off_t>(block * kPages * sizeof entry)) == sizeof entry;
    if (is_there && has_huge_flag(entry) && split(block)) {
      splits_.push_back({block, kRounds});
      ++turn_;
    } else if (may_split_) {
      // Unmapped, or split by somebody else.
      forget(block);
      if (huge_.empty()) break;
    }
  }
  told_part_ = huge_.empty() || splits_.empty()
                   ? 1
                   : static_cast<double>(splits_.size()) / static_cast<double>(huge_.size());
}

void SoftDirty::forget(uint64_t block) {
  std::erase(huge_, block);
  blocks_.erase(block);
}

bool SoftDirty::clear() {
  constexpr char kClearSoftDirty = '4';
  // Between this and what follows is too little for a program to begin to look at its marks, clear them and write.
  if (uses_soft_dirty(process_)) return false;
  const double before = now_ns(CLOCK_THREAD_CPUTIME_ID);
  look_what_is_there();
  choose_split();
  if (!std::exchange(is_first_, false)) expected_faults_ = static_cast<double>(faults_);
  faults_ = 0;
  const bool is_cleared = pwrite(marks_.number(), &kClearSoftDirty, 1, 0) == 1;
  clear_ns_ = now_ns(CLOCK_THREAD_CPUTIME_ID) - before;
  return is_cleared;
}

/// Of small pages as many as of huge ones, others each time.
bool SoftDirty::is_told(uint64_t block) const {
  if (told_part_ >= 1) return true;
  const uint64_t mixed = (block + turn_) * 0x9e3779b97f4a7c15;
  return static_cast<double>(mixed >> 32) < told_part_ * 4294967296.0;
}

SoftDirty::Fault SoftDirty::fault_at(uint64_t address) {
  ++faults_;
  if (blocks_.size() >= kMostBlocks) {
    blocks_.clear();
    asked_.clear();
    huge_.clear();
  }
  const uint64_t number = address / kBlock;
  Block& block = blocks_[number];
  if (block.present.test(address % kBlock / kPage))
    return block.is_huge || is_told(number) ? Fault::kWrite : Fault::kNotTold;
  if (!block.is_asked) asked_.push_back(number);
  block.is_asked = true;
  return Fault::kUnknown;
}

bool SoftDirty::is_in_huge_page(uint64_t address) {
  const uint64_t block = address / kBlock;
  if (is_split(block)) return true;
  uint64_t entry = 0;
  return pread(pagemap_.number(), &entry, sizeof entry,
               static_cast<off_t>(address / kPage * sizeof entry)) == sizeof entry &&
         has_huge_flag(entry);
}

void SoftDirty::leave_split(uint64_t address) {
  std::erase_if(splits_, [&](const Split& split) { return split.block == address / kBlock; });
  forget(address / kBlock);
}

void SoftDirty::finish() {
  for (const Split& split : splits_) join(split.block);
  splits_.clear();
}

bool uses_soft_dirty(pid_t process) {
  return has_open(process, [](std::string_view target) { return target.ends_with("/clear_refs"); });
}

}  // namespace bosk::affinity
