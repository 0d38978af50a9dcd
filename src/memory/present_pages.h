// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which pages of a range are there at all: of 1 TiB of reserved addresses perhaps a few, and whoever acts on pages one by
// one had better know.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "memory/pagemap.h"

namespace bosk::memory {

/// Pages [first, first + count) of a range.
struct PageRun {
  size_t first;
  size_t count;
};

/// How closely to look.
struct PresentLook {
  /// Gaps of at most so many pages are not left out: to ask move_pages about one page that is absent costs less than to
  /// begin anew.
  size_t gap = 64;
  /// Of a range of fewer pages nothing is left out.
  size_t worth_a_look = 8192;
  /// As Linux before 6.7 must do it.
  bool by_mincore = false;
};

/// Goes through the pages that `begin` (at a page) and the `pages - 1` behind it are. What is left out is absent. Takes
/// time by what is there (PAGEMAP_SCAN, Linux 6.7; without it 0.13 s for 1 TiB of nothing). System calls and its own
/// memory only, so it may be used where nothing else can be touched.
class PresentRuns {
 public:
  PresentRuns(uintptr_t begin, size_t pages, const PresentLook& look = {});
  ~PresentRuns();
  PresentRuns(const PresentRuns&) = delete;
  PresentRuns& operator=(const PresentRuns&) = delete;

  /// False: there are no more.
  bool next(PageRun* run);

 private:
  /// What the kernel fills in at a time.
  static constexpr size_t kLooks = 4096;
  static constexpr size_t kScans = 128;

  /// The next run without a gap.
  bool find(PageRun* run);
  bool find_scanned(PageRun* run);
  bool scan();
  bool find_by_mincore(PageRun* run);
  /// The first page from `from` on that is (or is not) there; `pages_`: none.
  size_t find(size_t from, bool there);
  bool is_there(size_t page);

  uintptr_t begin_;
  size_t pages_;
  size_t gap_;
  size_t page_bytes_;
  int file_;           ///< to scan; negative: the kernel does not, and mincore is asked
  bool look_;          ///< is it worth it
  bool held_ = false;  ///< `ahead_` was found, but belongs to the next run
  PageRun ahead_ = {};
  size_t at_ = 0;  ///< pages before it have been looked at
  size_t n_scanned_ = 0;
  size_t next_scanned_ = 0;
  size_t known_from_ = 0;
  size_t known_ = 0;  ///< pages from known_from_ on that `there_` is about
  union {
    uint8_t there_[kLooks];  ///< a byte for each page
    ScannedPages scanned_[kScans];
  };
};

}  // namespace bosk::memory
