// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PAGEMAP_SCAN goes by page tables and finds runs; mincore goes page by page. What they say is joined to longer runs.
#include "memory/present_pages.h"

#include <fcntl.h>
#include <linux/ioctl.h>
#include <string.h>

#include <algorithm>

#include "base/syscalls.h"
#include "memory/page_nodes.h"

namespace bosk::memory {
namespace {

/// As in <linux/fs.h> since 6.7.
struct ScanRequest {
  uint64_t size;
  uint64_t flags;
  uint64_t begin;
  uint64_t end;
  uint64_t walked_to;
  uint64_t found;
  uint64_t room;
  uint64_t most_pages;
  uint64_t inverted;
  uint64_t all_of;
  uint64_t any_of;
  uint64_t told;
};
static_assert(sizeof(ScanRequest) == 96);
constexpr unsigned long kScan = _IOWR('f', 16, ScanRequest);
constexpr uint64_t kPresent = 1 << 3;
constexpr uint64_t kSwapped = 1 << 4;

}  // namespace

PresentRuns::PresentRuns(uintptr_t begin, size_t pages, const PresentLook& look)
    : begin_(begin),
      pages_(pages),
      gap_(look.gap),
      page_bytes_(page_size()),
      file_(-1),
      look_(pages >= look.worth_a_look) {
  if (look_ && !look.by_mincore)
    file_ = static_cast<int>(base::raw_syscall(
        SYS_openat, AT_FDCWD, base::address_of("/proc/self/pagemap"), O_RDONLY | O_CLOEXEC));
}

PresentRuns::~PresentRuns() {
  if (file_ >= 0) base::raw_syscall(SYS_close, file_);
}

bool PresentRuns::next(PageRun* run) {
  if (!look_) {
    *run = {0, pages_};
    const bool first = at_ < pages_;
    at_ = pages_;
    return first;
  }
  if (held_)
    *run = ahead_;
  else if (!find(run))
    return false;
  while ((held_ = find(&ahead_)) && ahead_.first - (run->first + run->count) <= gap_)
    run->count = ahead_.first + ahead_.count - run->first;
  return true;
}

bool PresentRuns::find(PageRun* run) {
  if (file_ >= 0 && find_scanned(run)) return true;
  return file_ < 0 && find_by_mincore(run);
}

bool PresentRuns::find_scanned(PageRun* run) {
  while (next_scanned_ == n_scanned_)
    if (at_ >= pages_ || !scan()) return false;
  const Scanned& found = scanned_[next_scanned_++];
  run->first = (found.begin - begin_) / page_bytes_;
  run->count = (found.end - found.begin) / page_bytes_;
  return true;
}

/// False: the kernel cannot, and mincore goes on from where this came to.
bool PresentRuns::scan() {
  ScanRequest request = {};
  request.size = sizeof request;
  request.begin = begin_ + at_ * page_bytes_;
  request.end = begin_ + pages_ * page_bytes_;
  request.found = reinterpret_cast<uintptr_t>(scanned_);
  request.room = kScans;
  request.any_of = request.told = kPresent | kSwapped;
  const long found =
      base::raw_syscall(SYS_ioctl, file_, static_cast<long>(kScan), base::address_of(&request));
  // It goes forward, or there would be no end.
  if (found < 0 || request.walked_to <= request.begin) {
    base::raw_syscall(SYS_close, file_);
    file_ = -1;
    return false;
  }
  at_ = (request.walked_to - begin_) / page_bytes_;
  n_scanned_ = static_cast<size_t>(found);
  next_scanned_ = 0;
  return true;
}

bool PresentRuns::find_by_mincore(PageRun* run) {
  run->first = find(at_, true);
  at_ = run->first == pages_ ? pages_ : find(run->first, false);
  run->count = at_ - run->first;
  return run->count != 0;
}

size_t PresentRuns::find(size_t from, bool there) {
  while (from < pages_) {
    if (is_there(from) == there) return from;
    ++from;
    // Eight at once: nearly all of them are alike.
    for (uint64_t word; from + 8 <= known_from_ + known_; from += 8) {
      memcpy(&word, there_ + (from - known_from_), sizeof word);
      constexpr uint64_t kAll = 0x0101010101010101;
      if ((word & kAll) != (there ? 0 : kAll)) break;
    }
  }
  return pages_;
}

bool PresentRuns::is_there(size_t page) {
  if (page - known_from_ >= known_) {
    known_from_ = page;
    known_ = std::min(kLooks, pages_ - page);
    // Of what the kernel does not tell, move_pages will.
    if (base::raw_syscall(SYS_mincore, static_cast<long>(begin_ + page * page_bytes_),
                          static_cast<long>(known_ * page_bytes_), base::address_of(there_)) != 0)
      memset(there_, 1, known_);
  }
  return (there_[page - known_from_] & 1) != 0;
}

}  // namespace bosk::memory
