// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small things about the processor: spin hints, the cycle counter, cache lines.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::base {

/// What two writers must stay apart by. x86 prefetches lines in pairs, but 64 keeps teams small and
/// measured no different here.
inline constexpr size_t kCacheLine = 64;

inline void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// A counter that grows with time at a fixed rate; only differences mean anything.
inline uint64_t cycles() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#endif
}

/// cycles() per microsecond, measured once (about 2 ms the first time, off every hot path).
uint64_t cycles_per_microsecond();

/// cycles() that a poll of one word takes, the pause included: what libgomp calls a spin. Measured at
/// each call (some microseconds).
uint64_t cycles_per_poll();

#define BOSK_LIKELY(x) __builtin_expect(!!(x), 1)
#define BOSK_UNLIKELY(x) __builtin_expect(!!(x), 0)

}  // namespace bosk::base
