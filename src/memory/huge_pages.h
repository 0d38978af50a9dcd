// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts of huge pages. The kernel moves a huge page as a whole, whichever of its 512 small ones is asked for; who wants
// only some of them to go has it split first.
//
// MADV_COLD on one small page splits the huge page that it is a part of (170 to 220 us); of a small page it costs 1 us and
// does nothing that a move does not do. Afterwards MADV_NOHUGEPAGE on the 2 MiB, or khugepaged would join what lies on
// several nodes on one of them. Locked memory refuses the split, memory shared with a child is left whole without a word.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "memory/pagemap.h"

namespace bosk::memory {

/// Size and alignment of the kernel's transparent huge pages; 2 MiB where it does not say.
size_t huge_page_bytes();

/// Pages between where a huge page could begin and `at`.
size_t pages_before(uintptr_t at);
/// Of `count` pages from `first` on, as many as end where a huge page does, if that leaves any: whoever works in batches takes so
/// many at a time, or huge pages between two would be parts.
size_t whole_blocks(uintptr_t first, size_t count);

/// Pages of one huge page, or of as many bytes where there could be one (a block).
struct PartToGo {
  uintptr_t begin;      ///< what is to be dealt with of the block,
  uintptr_t end;        ///< all of it or a part: the rest stays
  uintptr_t goes;       ///< the first page in there that is to go,
  int target;           ///< to this node, by the kernel's number
  uintptr_t elsewhere;  ///< one in there that is to go to another node or to stay; 0: none
};

/// Where huge pages are mapped as such, for one migration. Any thread; system calls only.
class HugePageMap {
 public:
  HugePageMap() = default;
  ~HugePageMap();
  HugePageMap(const HugePageMap&) = delete;
  HugePageMap& operator=(const HugePageMap&) = delete;

  /// 1: it is mapped as one. 0: it is not. Negative: the kernel does not say.
  int is_huge(uintptr_t block);
  /// The same of the first 64 blocks from `first` on, a bit each; 0 also where the kernel does not say.
  uint64_t huge_blocks(uintptr_t first, size_t count);
  /// Did the kernel say anything when it was asked last?
  bool tells() const { return tells_; }

 private:
  int file_ = kUnopened;
  bool tells_ = false;
  static constexpr int kUnopened = -1;

  long scan(uintptr_t begin, uintptr_t end, ScannedPages* found, size_t room);
};

/// From now on pages of the block move one by one. False: they do not, and none of them may be sent. Neighbours are where
/// they were, either way.
bool set_free(HugePageMap& map, const PartToGo& part);

/// The kernel's part of it: for tests, which put one of their own in its place.
struct HugePageCalls {
  long (*advise)(uintptr_t at, size_t bytes, int advice);  ///< as madvise(2); negative errno
  int (*is_huge)(uintptr_t block);                         ///< as HugePageMap::is_huge()
};
/// Null: the kernel's own.
void set_huge_page_calls(const HugePageCalls* calls);

}  // namespace bosk::memory
