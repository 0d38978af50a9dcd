// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arithmetic of loops: iteration spaces, and how each schedule cuts them. No state, no atomics.
//
// Everything counts iterations in unsigned 64 bits, 0 .. count-1, and turns iteration numbers into
// values of the loop variable only at the end, modulo 2^64. A conforming loop's variable never
// leaves its type, so the result is exact, and no intermediate value can overflow.
#pragma once

#include <stdint.h>

#include "base/cpu.h"

namespace bosk::omp {

/// What a thread is told to run: [begin, end) in steps of the loop's increment, as bit patterns of
/// the loop's type (long or unsigned long long).
struct Chunk {
  uint64_t begin;
  uint64_t end;
};

/// Iteration numbers [first, last).
struct IterationRange {
  uint64_t first;
  uint64_t last;
  bool empty() const { return first >= last; }
};

/// A loop as the compiler describes it, the same for `long` and `unsigned long long`.
struct LoopBounds {
  uint64_t start;
  uint64_t end;   ///< exclusive
  uint64_t step;  ///< two's complement of a negative increment
  bool up;
  bool empty;  ///< no iteration at all; needs the signedness that the other fields have lost
};

/// An increment of 0 is no loop at all in OpenMP: nothing is run.
inline LoopBounds bounds_of(long start, long end, long incr) {
  const bool up = incr > 0;
  return {static_cast<uint64_t>(start), static_cast<uint64_t>(end), static_cast<uint64_t>(incr), up,
          incr == 0 || (up ? start >= end : start <= end)};
}

inline LoopBounds bounds_of(bool up, unsigned long long start, unsigned long long end,
                            unsigned long long incr) {
  return {start, end, incr, up, incr == 0 || (up ? start >= end : start <= end)};
}

/// a / b for b > 0. 64-bit division is slow on many processors, small numbers are common.
inline uint64_t divide(uint64_t a, uint64_t b) {
  if (BOSK_LIKELY(((a | b) >> 32) == 0)) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

inline uint64_t divide_up(uint64_t a, uint64_t b) {
  const uint64_t quotient = divide(a, b);
  return quotient + (quotient * b != a);
}

/// Number of iterations. At most 2^64 - 1: the bounds are at most that far apart.
inline uint64_t trip_count(const LoopBounds& bounds) {
  if (bounds.empty) return 0;
  const uint64_t distance = bounds.up ? bounds.end - bounds.start : bounds.start - bounds.end;
  const uint64_t stride = bounds.up ? bounds.step : 0 - bounds.step;
  if (BOSK_LIKELY(stride == 1)) return distance;
  return divide(distance - 1, stride) + 1;
}

/// The values for iterations [first, last) of a loop of `count` iterations. The last chunk ends at
/// the loop's own end: one step past the last iteration may not be representable.
inline Chunk chunk_of(uint64_t start, uint64_t end, uint64_t step, uint64_t count,
                      IterationRange range) {
  return {start + range.first * step, range.last == count ? end : start + range.last * step};
}

/// Static without a chunk size: the first count % size members get one iteration more, exactly as
/// GCC computes it inline; programs rely on both giving a member the same iterations.
inline IterationRange block_of(uint64_t count, uint32_t size, uint32_t index) {
  const uint64_t quotient = divide(count, size);
  const uint64_t rest = count - quotient * size;
  if (index < rest) {
    const uint64_t first = index * (quotient + 1);
    return {first, first + quotient + 1};
  }
  const uint64_t first = index * quotient + rest;
  return {first, first + quotient};
}

/// The member whose block holds `iteration`.
inline uint32_t block_owner(uint64_t count, uint32_t size, uint64_t iteration) {
  const uint64_t quotient = count / size;
  const uint64_t rest = count % size;
  const uint64_t in_long_blocks = rest * (quotient + 1);
  if (iteration < in_long_blocks) return static_cast<uint32_t>(iteration / (quotient + 1));
  return static_cast<uint32_t>(rest + (iteration - in_long_blocks) / quotient);
}

/// Iterations of chunk number `k` where all chunks but the last have `chunk` iterations. The chunk
/// must exist (k * chunk < count).
inline IterationRange fixed_chunk(uint64_t count, uint64_t chunk, uint64_t k) {
  const uint64_t first = k * chunk;
  return {first, count - first > chunk ? first + chunk : count};
}

/// Guided: a share of what remains, at least `chunk`; never more than remains.
inline uint64_t guided_share(uint64_t remaining, uint32_t size, uint64_t chunk) {
  uint64_t share = divide_up(remaining, size);
  if (share < chunk) share = chunk;
  return share < remaining ? share : remaining;
}

/// True if `size` members that each add `chunk` once too often cannot carry a counter of iterations
/// past 2^64: then the counter may be moved by fetch_add.
inline bool overshoot_fits(uint64_t count, uint64_t chunk, uint32_t size) {
  uint64_t overshoot;
  if (__builtin_mul_overflow(chunk, static_cast<uint64_t>(size) + 1, &overshoot)) return false;
  return overshoot <= UINT64_MAX - count;
}

}  // namespace bosk::omp
