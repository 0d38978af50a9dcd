// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each node has some boxes: ranges of addresses that are watched, so that UFFDIO_MOVE takes them as a destination. The pages
// of a box are its first ones, without a gap; what comes goes behind them, what leaves is taken from there.
//
// A box belongs to whoever has its flag. Nobody waits for one (a handler could not be switched away from): a box that is
// taken is passed over, and the caller goes on without.
#include "memory/next_touch/reserve.h"

#include <string.h>
#include <sys/mman.h>

#include <atomic>

#include "base/pages.h"
#include "memory/next_touch/userfault.h"

namespace bosk::memory {
namespace {

constexpr uint32_t kBoxPages = 256;
constexpr uint32_t kBoxes = 4;  ///< of a node: 4 MiB

// A line each: threads of one node work on several at the same time.
struct alignas(64) Box {
  std::atomic<bool> taken;
  std::atomic<uint32_t>
      pages;       ///< relaxed: by whoever has the flag; looked at by others to pass it over
  uintptr_t base;  ///< 0: not mapped yet
  int watched_by;  ///< the userfaultfd
};
constexpr uint32_t kNodes = 64;  ///< those behind do without
constinit Box boxes[kNodes][kBoxes] = {};

uintptr_t address(const Box& box, uint32_t page) { return box.base + page * base::kPage; }

bool take(Box& box) {
  // acquire: what the last one did to the box is seen.
  return !box.taken.load(std::memory_order_relaxed) &&
         !box.taken.exchange(true, std::memory_order_acquire);
}
void leave(Box& box) { box.taken.store(false, std::memory_order_release); }

/// Gives up the last `count` of its pages.
void drop_last(Box& box, uint32_t count) {
  const uint32_t left = box.pages.load(std::memory_order_relaxed) - count;
  base::raw_syscall(SYS_madvise, static_cast<long>(address(box, left)),
                    static_cast<long>(count * base::kPage), MADV_DONTNEED);
  box.pages.store(left, std::memory_order_relaxed);
}

bool map_box(Box& box, int userfault) {
  if (box.base != 0) return box.watched_by == userfault;
  constexpr size_t kBytes = kBoxPages * base::kPage;
  void* at = base::map_pages(kBytes);
  if (at == nullptr) return false;
  const auto begin = reinterpret_cast<uintptr_t>(at);
  // A page that a child shares could not be moved any more. And no huge pages: they would be split.
  const bool ready =
      base::raw_syscall(SYS_madvise, static_cast<long>(begin), kBytes, MADV_DONTFORK) == 0 &&
      userfault_register(userfault, begin, begin + kBytes, UFFDIO_REGISTER_MODE_MISSING) == 0;
  if (!ready) {
    base::unmap_pages(at, kBytes);
    return false;
  }
  base::raw_syscall(SYS_madvise, static_cast<long>(begin), kBytes, MADV_NOHUGEPAGE);
  box.base = begin;
  box.watched_by = userfault;
  return true;
}

/// Calls f for a box of the node that is free, fits, and takes part; true ends it. Threads begin at different ones.
template <typename Fits, typename F>
void with_box(uint32_t node, Fits fits, F f) {
  if (node >= kNodes) return;
  const auto first = static_cast<uint32_t>(base::thread_id());
  for (uint32_t i = 0; i < kBoxes; ++i) {
    Box& box = boxes[node][(first + i) % kBoxes];
    if (!fits(box.pages.load(std::memory_order_relaxed)) || !take(box)) continue;
    const bool done = fits(box.pages.load(std::memory_order_relaxed)) && f(box);
    leave(box);
    if (done) return;
  }
}

}  // namespace

uint32_t fill_from_reserve(int userfault, uintptr_t to, uintptr_t from, uint32_t pages,
                           uint32_t node) {
  uint32_t filled = 0;
  with_box(
      node, [](uint32_t there) { return there != 0; },
      [&](Box& box) {
        if (box.watched_by != userfault) return false;
        const uint32_t there = box.pages.load(std::memory_order_relaxed);
        const uint32_t count = there < pages ? there : pages;
        const uintptr_t run = address(box, there - count);
        memcpy(reinterpret_cast<void*>(run), reinterpret_cast<const void*>(from),
               count * base::kPage);
        size_t moved;
        const long failed = userfault_move_all(userfault, to, run, count * base::kPage, &moved);
        filled = static_cast<uint32_t>(moved / base::kPage);
        // What has not gone lies behind a gap now.
        if (failed != 0)
          drop_last(box, count);
        else
          box.pages.store(there - count, std::memory_order_relaxed);
        return true;
      });
  return filled;
}

uint32_t put_into_reserve(int userfault, uintptr_t from, uint32_t pages, uint32_t node) {
  uint32_t put = 0;
  with_box(
      node, [](uint32_t there) { return there < kBoxPages; },
      [&](Box& box) {
        if (!map_box(box, userfault)) return false;
        const uint32_t there = box.pages.load(std::memory_order_relaxed);
        const uint32_t room = kBoxPages - there;
        const uint32_t left = pages - put;
        size_t moved;
        const long failed =
            userfault_move_all(userfault, address(box, there), from + put * base::kPage,
                               (left < room ? left : room) * base::kPage, &moved);
        const auto count = static_cast<uint32_t>(moved / base::kPage);
        box.pages.store(there + count, std::memory_order_relaxed);
        put += count;
        return failed != 0 || put == pages;
      });
  return put;
}

void empty_reserve() {
  for (auto& node : boxes)
    for (Box& box : node) {
      if (box.pages.load(std::memory_order_relaxed) == 0 || !take(box)) continue;
      drop_last(box, box.pages.load(std::memory_order_relaxed));
      leave(box);
    }
}

void forget_reserve() {
  for (auto& node : boxes)
    for (Box& box : node) {
      box.base = 0;
      box.pages.store(0, std::memory_order_relaxed);
      box.taken.store(false, std::memory_order_relaxed);
    }
}

uint64_t pages_in_reserve() {
  uint64_t pages = 0;
  for (auto& node : boxes)
    for (Box& box : node) pages += box.pages.load(std::memory_order_relaxed);
  return pages;
}

}  // namespace bosk::memory
