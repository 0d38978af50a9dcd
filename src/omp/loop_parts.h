// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dynamic and guided loops whose chunks may be given out in any order: each member has a part, and
// steals.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/cpu.h"

namespace bosk::omp {

/// The chunks that a member has before it: numbers next … end - 1, in one word {next:32, end:32}. The
/// member takes them one by one; a member that has none takes the upper half of somebody else's. So
/// chunks cost a read-modify-write on a line that is nearly always the member's own, and with equal costs
/// each member has the same iterations every time, which keeps their data near.
///
/// Why each chunk is given out once: a word that is not empty changes only by compare-and-swap, and an
/// empty one only by its member's refill(). No word ever holds the same chunks twice, for `next` of a
/// part that is gone has been given out; so a thief's old view of a word fails. All orders are relaxed:
/// the words hold numbers; what the iterations read was ordered before the construct.
///
/// A part on its way from one word to another is in none: who looks just then may find nothing and leave
/// the construct early. That loses help, not chunks.
template <class A>
class alignas(base::kCacheLine) LoopPart {
 public:
  static constexpr uint64_t kMostChunks = UINT32_MAX;

  /// Before the construct is published, or by the member, whose part is empty.
  void refill(uint32_t first, uint32_t end) {
    word_.store(uint64_t{first} << 32 | end, std::memory_order_relaxed);
  }

  /// The member's next chunk.
  bool take(uint32_t* chunk) {
    uint64_t seen = word_.load(std::memory_order_relaxed);
    do {
      if (next_of(seen) >= end_of(seen)) return false;
    } while (!word_.compare_exchange_weak(seen, seen + kOne, std::memory_order_relaxed,
                                          std::memory_order_relaxed));
    *chunk = next_of(seen);
    return true;
  }

  /// The member's next chunks: half of what it has, the larger half if they differ.
  bool take_half(uint32_t* first, uint32_t* end) {
    uint64_t seen = word_.load(std::memory_order_relaxed);
    uint32_t middle;
    do {
      if (next_of(seen) >= end_of(seen)) return false;
      middle = end_of(seen) - (end_of(seen) - next_of(seen)) / 2;
    } while (!word_.compare_exchange_weak(seen, uint64_t{middle} << 32 | end_of(seen),
                                          std::memory_order_relaxed, std::memory_order_relaxed));
    *first = next_of(seen);
    *end = middle;
    return true;
  }

  /// Anybody else: the upper half, the larger one if they differ.
  bool steal(uint32_t* first, uint32_t* end) {
    uint64_t seen = word_.load(std::memory_order_relaxed);
    uint32_t middle;
    do {
      if (next_of(seen) >= end_of(seen)) return false;
      middle = next_of(seen) + (end_of(seen) - next_of(seen)) / 2;
    } while (!word_.compare_exchange_weak(seen, (seen >> 32) << 32 | middle,
                                          std::memory_order_relaxed, std::memory_order_relaxed));
    *first = middle;
    *end = end_of(seen);
    return true;
  }

  /// Where the member is, from 1 on, or was when it last had this part; 0: it never had. A hint.
  void set_node(uint32_t node) { node_.store(node, std::memory_order_relaxed); }
  uint32_t node() const { return node_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kOne = uint64_t{1} << 32;
  static uint32_t next_of(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
  static uint32_t end_of(uint64_t word) { return static_cast<uint32_t>(word); }

  typename A::template atomic<uint64_t> word_{0};
  typename A::template atomic<uint32_t> node_{0};
};

/// Are they worth it: enough chunks for each member to have some before it must look for others'. Fewer
/// will do where iterations have a memory node that they are near to.
inline bool parts_pay(uint64_t chunks, uint32_t size, bool several_nodes) {
  constexpr uint64_t kChunksPerMember = 32;
  constexpr uint64_t kChunksPerMemberOfNodes = 3;
  return chunks >= (several_nodes ? kChunksPerMemberOfNodes : kChunksPerMember) * size;
}

struct WorkShare;

/// Sets the loop up for parts, if they pay: `share.chunks` and all before is known.
bool build_parts(WorkShare& share, bool guided);

}  // namespace bosk::omp
