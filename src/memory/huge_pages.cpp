// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From cheap to dear: a page is made cold first, which is all that small pages cost. Whether there is a huge page the
// kernel is asked only where a few pages of the block do not show that there is none.
//
// The mapping of a huge page may have been split before, by mprotect or mbind on a part of it; then it is no huge page to
// PAGEMAP_SCAN, but still moves as one. MADV_COLD splits it as well. Where the memory is locked and the scan does not tell,
// one page is sent ahead: if a neighbour has come along, it goes back, and the neighbour with it.
#include "memory/huge_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>

#include "base/pages.h"
#include "base/syscalls.h"
#include "memory/migration_batch.h"
#include "memory/pagemap.h"

namespace bosk::memory {
namespace {

// Relaxed throughout: figures that do not change, and whoever sets calls for a test waits for nobody.
constinit std::atomic<size_t> known_bytes{0};
constinit std::atomic<bool> cannot_scan{false};
constinit std::atomic<const HugePageCalls*> other_calls{nullptr};

size_t read_huge_page_bytes() {
  const long file = base::raw_syscall(
      SYS_openat, AT_FDCWD, base::address_of("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"),
      O_RDONLY | O_CLOEXEC);
  if (file < 0) return base::kHugePage;
  char text[32];
  const long length = base::raw_syscall(SYS_read, file, base::address_of(text), sizeof text);
  base::raw_syscall(SYS_close, file);
  size_t bytes = 0;
  for (long i = 0; i < length && text[i] >= '0' && text[i] <= '9'; ++i)
    bytes = bytes * 10 + static_cast<size_t>(text[i] - '0');
  return bytes > page_bytes() && (bytes & (bytes - 1)) == 0 ? bytes : base::kHugePage;
}

long advise(uintptr_t at, size_t bytes, int advice) {
  const HugePageCalls* other = other_calls.load(std::memory_order_relaxed);
  if (other != nullptr) return other->advise(at, bytes, advice);
  return base::raw_syscall(SYS_madvise, static_cast<long>(at), static_cast<long>(bytes), advice);
}

uintptr_t block_of(uintptr_t at) { return at & ~(huge_page_bytes() - 1); }

/// Pages of a block by which it is told from others: where they are, by the kernel's numbers.
class Witnesses {
 public:
  /// The page that is to go, and some that are not to go with it.
  explicit Witnesses(const PartToGo& part) {
    const uintptr_t block = block_of(part.goes);
    const uintptr_t block_end = block + huge_page_bytes();
    add(part.goes);
    if (part.elsewhere != 0) add(part.elsewhere);
    if (part.begin > block) {
      add(block);
      add(part.begin - page_bytes());
    }
    if (part.end < block_end) {
      add(part.end);
      add(block_end - page_bytes());
    }
  }

  bool ask() { return call_move_pages(count_, pages_, nullptr, node_) >= 0; }
  /// All are there, on one node: so it is with huge pages.
  bool are_together() const {
    for (uint32_t i = 0; i < count_; ++i)
      if (node_[i] < 0 || node_[i] != node_[0]) return false;
    return true;
  }
  int node_of_goer() const { return node_[0]; }
  /// One that is not to go and is where that is which is. -1: none.
  int neighbour() const {
    for (uint32_t i = 1; i < count_; ++i)
      if (node_[i] == node_[0]) return static_cast<int>(i);
    return -1;
  }
  int node_of(int witness) const { return node_[witness]; }
  /// Sends the page that is to go.
  void send(int node) {
    int status;
    call_move_pages(1, pages_, &node, &status);
  }

 private:
  void add(uintptr_t page) { pages_[count_++] = reinterpret_cast<void*>(page); }

  uint32_t count_ = 0;
  void* pages_[6];
  int node_[6];
};

/// Sends one page ahead and asks whether a neighbour has come along; then all is as before.
bool comes_along(const PartToGo& part) {
  Witnesses witnesses(part);
  if (!witnesses.ask()) return false;
  const int before = witnesses.node_of_goer();
  const int neighbour = witnesses.neighbour();
  if (before < 0 || before == part.target || neighbour < 0) return false;
  witnesses.send(part.target);
  const bool came = witnesses.ask() && witnesses.node_of(neighbour) == part.target;
  if (came) witnesses.send(before);
  return came;
}

}  // namespace

size_t huge_page_bytes() {
  size_t bytes = known_bytes.load(std::memory_order_relaxed);
  if (bytes == 0) known_bytes.store(bytes = read_huge_page_bytes(), std::memory_order_relaxed);
  return bytes;
}

size_t pages_before(uintptr_t at) { return (at & (huge_page_bytes() - 1)) / page_bytes(); }

size_t whole_blocks(uintptr_t first, size_t count) {
  const size_t over = (pages_before(first) + count) % (huge_page_bytes() / page_bytes());
  return over < count ? count - over : count;
}

void set_huge_page_calls(const HugePageCalls* calls) {
  other_calls.store(calls, std::memory_order_relaxed);
}

HugePageMap::~HugePageMap() { close_pagemap(file_); }

long HugePageMap::scan(uintptr_t begin, uintptr_t end, ScannedPages* found, size_t room) {
  if (cannot_scan.load(std::memory_order_relaxed)) return -ENOTTY;
  if (file_ < 0) file_ = open_pagemap();
  uintptr_t walked_to;
  const long runs = scan_pagemap(file_, begin, end, kPageHuge, found, room, &walked_to);
  if (runs < 0 && file_ >= 0) cannot_scan.store(true, std::memory_order_relaxed);
  return runs;
}

int HugePageMap::is_huge(uintptr_t block) {
  const HugePageCalls* other = other_calls.load(std::memory_order_relaxed);
  if (other != nullptr) return other->is_huge(block);
  ScannedPages found;
  const long runs = scan(block, block + huge_page_bytes(), &found, 1);
  return runs < 0 ? -1 : runs > 0 ? 1 : 0;
}

uint64_t HugePageMap::huge_blocks(uintptr_t first, size_t count) {
  constexpr size_t kMost = 64;
  const size_t size = huge_page_bytes();
  if (count > kMost) count = kMost;
  uint64_t blocks = 0;
  if (other_calls.load(std::memory_order_relaxed) != nullptr) {
    for (size_t i = 0; i < count; ++i) {
      const int said = is_huge(first + i * size);
      tells_ = said >= 0;
      blocks |= uint64_t{said > 0} << i;
    }
    return blocks;
  }
  ScannedPages found[kMost];
  const long runs = scan(first, first + count * size, found, kMost);
  tells_ = runs >= 0;
  for (long run = 0; run < runs; ++run)
    for (uintptr_t at = found[run].begin; at < found[run].end; at += size)
      blocks |= uint64_t{1} << (at - first) / size;
  return blocks;
}

bool set_free(HugePageMap& map, const PartToGo& part) {
  const uintptr_t block = block_of(part.goes);
  Witnesses witnesses(part);
  const bool together = witnesses.ask() && witnesses.are_together();
  const int huge = together ? map.is_huge(block) : 0;
  long said = advise(part.goes, page_bytes(), MADV_COLD);
  // It is left whole also where somebody has it locked at this moment.
  if (said == 0 && huge > 0 && map.is_huge(block) > 0) {
    said = advise(part.goes, page_bytes(), MADV_COLD);
    if (said == 0 && map.is_huge(block) > 0) return false;
  }
  if (said == 0) {
    if (together && huge != 0) advise(block, huge_page_bytes(), MADV_NOHUGEPAGE);
    return true;
  }
  // Nothing is mapped there, or the kernel knows no such advice: move_pages will tell.
  if (said != -EINVAL) return true;
  if (huge > 0) return false;
  // Locked, and perhaps only what is to go: a page beside it belongs to the same huge page.
  const uintptr_t beside = part.begin > block ? part.begin - page_bytes() : part.end;
  if (block_of(beside) == block && advise(beside, page_bytes(), MADV_COLD) == 0) return true;
  return !comes_along(part);
}

}  // namespace bosk::memory
