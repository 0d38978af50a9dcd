// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One bit a page. A slot begins in one word and ends there.
#include "memory/next_touch/slots.h"

#include <sys/mman.h>
#include <sys/utsname.h>

#include "base/pages.h"
#include "base/parse.h"
#include "memory/next_touch/userfault.h"

namespace bosk::memory {
namespace {

constexpr uint32_t kWords = 32;
constexpr uint32_t kPages = kWords * 64;  // 8 MiB of addresses
constexpr size_t kBytes = kPages * base::kPage;

struct Slots {
  uintptr_t base;  ///< 0: not mapped yet
  int watched_by;  ///< the userfaultfd
  bool none;       ///< cannot be had in this process
  uint32_t word;   ///< where the last one was found
  uint64_t taken[kWords];
};
constinit Slots slots = {};

bool map_slots(int userfault) {
  void* at = base::map_pages(kBytes);
  if (at == nullptr) return false;
  const auto begin = reinterpret_cast<uintptr_t>(at);
  // No huge pages: they would be split. Children have it, too: what is in it when the program forks by a system call of its
  // own is as shared as it would be elsewhere, and is copied then.
  base::raw_syscall(SYS_madvise, static_cast<long>(begin), kBytes, MADV_NOHUGEPAGE);
  if (userfault_register(userfault, begin, begin + kBytes, UFFDIO_REGISTER_MODE_MISSING) != 0) {
    base::unmap_pages(at, kBytes);
    return false;
  }
  slots.base = begin;
  slots.watched_by = userfault;
  return true;
}

/// The first of `pages` bits that are clear, 64: there are none.
uint32_t clear_bits(uint64_t taken, uint32_t pages) {
  uint64_t begins = ~taken;
  for (uint32_t i = 1; i < pages; ++i) begins &= ~taken >> i;
  // What is shifted in from above is not there.
  begins &= ~uint64_t{0} >> (pages - 1);
  return begins != 0 ? static_cast<uint32_t>(__builtin_ctzll(begins)) : 64;
}

uint64_t mask_of(uint32_t first, uint32_t pages) { return ((uint64_t{1} << pages) - 1) << first; }

}  // namespace

bool moves_runs(const char* release) {
  base::TextReader reader(release);
  uint64_t major;
  uint64_t minor;
  return reader.take_digits(&major) && reader.take('.') && reader.take_digits(&minor) &&
         (major > 6 || (major == 6 && minor >= 18));
}

uint32_t most_slot_pages() {
  static constinit uint32_t most = 0;
  if (most == 0) {
    utsname kernel{};
    most = uname(&kernel) == 0 && moves_runs(kernel.release) ? kSlotPages : 2;
  }
  return most;
}

uintptr_t take_slot(int userfault, uint32_t pages) {
  if (slots.none || (slots.base == 0 && !map_slots(userfault))) {
    slots.none = true;
    return 0;
  }
  if (slots.watched_by != userfault) return 0;
  for (uint32_t i = 0; i < kWords; ++i) {
    const uint32_t word = (slots.word + i) % kWords;
    const uint32_t first = clear_bits(slots.taken[word], pages);
    if (first == 64) continue;
    slots.taken[word] |= mask_of(first, pages);
    slots.word = word;
    return slots.base + (size_t{word} * 64 + first) * base::kPage;
  }
  return 0;
}

void give_slot_back(uintptr_t at, uint32_t pages) {
  const auto page = static_cast<uint32_t>((at - slots.base) / base::kPage);
  // Refused: somebody has locked all memory, say. What is in it must not be found by the next one: nobody has it again.
  if (base::raw_syscall(SYS_madvise, static_cast<long>(at),
                        static_cast<long>(size_t{pages} * base::kPage), MADV_DONTNEED) != 0)
    return;
  slots.taken[page / 64] &= ~mask_of(page % 64, pages);
}

void forget_slots(bool in_use) {
  if (slots.base == 0) return;
  if (in_use) {
    slots.none = true;
    return;
  }
  base::unmap_pages(reinterpret_cast<void*>(slots.base), kBytes);
  slots = {};
}

}  // namespace bosk::memory
