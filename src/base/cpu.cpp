// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rate of the cycle counter.
#include "base/cpu.h"

#include <time.h>

#include <atomic>

namespace bosk::base {

uint64_t cycles_per_microsecond() {
#if defined(__aarch64__)
  uint64_t hz;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(hz));
  return hz < 1'000'000 ? 1 : hz / 1'000'000;
#else
  static constinit std::atomic<uint64_t> known{0};
  uint64_t rate = known.load(std::memory_order_relaxed);
  if (rate != 0) return rate;
  const auto now_ns = [] {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
  };
  const uint64_t t0 = now_ns();
  const uint64_t c0 = cycles();
  uint64_t t1;
  do t1 = now_ns();
  while (t1 - t0 < 200'000);
  rate = (cycles() - c0) * 1000 / (t1 - t0);
  if (rate == 0) rate = 1;
  known.store(rate, std::memory_order_relaxed);
  return rate;
#endif
}

uint64_t cycles_per_poll() {
  constexpr int kPolls = 64;
  std::atomic<uint32_t> word{0};
  uint64_t least = UINT64_MAX;
  // The shortest of a few: an interrupt only makes one longer.
  for (int i = 0; i < 5; ++i) {
    const uint64_t start = cycles();
    for (int k = 0; k < kPolls && word.load(std::memory_order_relaxed) == 0; ++k) cpu_pause();
    const uint64_t took = cycles() - start;
    if (took < least) least = took;
  }
  return least < kPolls ? 1 : least / kPolls;
}

}  // namespace bosk::base
