// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PAGEMAP_SCAN goes by page tables and finds runs; mincore goes page by page. What they say is joined to longer runs.
#include "memory/present_pages.h"

#include <string.h>

#include <algorithm>

#include "base/syscalls.h"
#include "memory/page_nodes.h"

namespace bosk::memory {

PresentRuns::PresentRuns(uintptr_t begin, size_t pages, const PresentLook& look)
    : begin_(begin),
      pages_(pages),
      gap_(look.gap),
      page_bytes_(page_size()),
      file_(-1),
      look_(pages >= look.worth_a_look) {
  if (look_ && !look.by_mincore) file_ = open_pagemap();
}

PresentRuns::~PresentRuns() { close_pagemap(file_); }

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
  const ScannedPages& found = scanned_[next_scanned_++];
  run->first = (found.begin - begin_) / page_bytes_;
  run->count = (found.end - found.begin) / page_bytes_;
  return true;
}

/// False: the kernel cannot, and mincore goes on from where this came to.
bool PresentRuns::scan() {
  const uintptr_t from = begin_ + at_ * page_bytes_;
  uintptr_t walked_to = 0;
  const long found = scan_pagemap(file_, from, begin_ + pages_ * page_bytes_,
                                  kPagePresent | kPageSwapped, scanned_, kScans, &walked_to);
  // It goes forward, or there would be no end.
  if (found < 0 || walked_to <= from) {
    close_pagemap(file_);
    file_ = -1;
    return false;
  }
  at_ = (walked_to - begin_) / page_bytes_;
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
