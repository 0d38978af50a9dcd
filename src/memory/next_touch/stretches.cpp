// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gaps are counted by their magnitude, and the smallest ones are bridged.
#include "memory/next_touch/stretches.h"

#include <sys/syscall.h>

#include "base/syscalls.h"
#include "memory/next_touch/region.h"

namespace bosk::memory {
namespace {

/// Of a mark. A stretch takes up to three mappings (its own, its shadow, and the gap behind it), and the kernel allows
/// 65,530 to everybody.
constexpr size_t kMostStretches = 1024;

constexpr uint64_t kSamples = 16;

}  // namespace

bool is_sparse(uintptr_t begin, uintptr_t end) {
  const size_t pages = (end - begin) / base::kPage;
  if (pages < PresentLook{}.worth_a_look) return false;
  uint64_t there = 0;
  for (uint64_t i = 1; i <= kSamples; ++i) {
    // By the golden ratio: programs touch pages at regular distances. The upper bits, spread over the range.
    const uint64_t part = (i * 0x9e3779b97f4a7c15) >> 32;
    const auto page = static_cast<size_t>((static_cast<unsigned __int128>(part) * pages) >> 32);
    unsigned char present = 0;
    const long failed =
        base::raw_syscall(SYS_mincore, static_cast<long>(begin + page * base::kPage), base::kPage,
                          base::address_of(&present));
    there += failed == 0 && (present & 1) != 0 ? 1 : 0;
  }
  return 2 * there < kSamples;
}

size_t gap_between_stretches(uintptr_t begin, uintptr_t end) {
  PresentLook look;
  look.gap = kChunkPages;  // to put back that much of nothing costs what another region does
  look.worth_a_look = 0;
  size_t gaps[64] = {};  // by the number of their highest bit
  PresentRuns runs(begin, (end - begin) / base::kPage, look);
  size_t behind = 0;
  for (PageRun run; runs.next(&run); behind = run.first + run.count)
    if (behind != 0) ++gaps[63 - __builtin_clzll(run.first - behind)];
  size_t stretches = 1;
  for (int bit = 63; bit >= 0; --bit) {
    stretches += gaps[bit];
    if (stretches > kMostStretches) return (size_t{2} << bit) - 1;
  }
  return look.gap;
}

}  // namespace bosk::memory
