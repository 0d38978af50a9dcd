// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mincore, and what it says joined to runs.
#include "memory/present_pages.h"

#include <string.h>

#include <algorithm>

#include "base/syscalls.h"
#include "memory/page_nodes.h"

namespace bosk::memory {
namespace {

constexpr size_t kNotWorthALook = 8192;
/// To ask move_pages about one that is absent costs less than to begin anew.
constexpr size_t kSmallGap = 64;

}  // namespace

PresentRuns::PresentRuns(uintptr_t begin, size_t pages)
    : begin_(begin), pages_(pages), page_bytes_(page_size()) {}

bool PresentRuns::next(PageRun* run) {
  if (at_ >= pages_) return false;
  if (pages_ < kNotWorthALook) {
    *run = {0, pages_};
    at_ = pages_;
    return true;
  }
  const size_t first = find(at_, true);
  if (first == pages_) {
    at_ = pages_;
    return false;
  }
  size_t end = find(first, false);
  for (size_t more; end < pages_ && (more = find(end, true)) < pages_ && more - end <= kSmallGap;)
    end = find(more, false);
  *run = {first, end - first};
  at_ = end;
  return true;
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
