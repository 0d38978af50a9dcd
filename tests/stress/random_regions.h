// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random trees of nested regions, and the same trees computed by one thread for comparison.
//
// A tree is a pure function of its seed: team sizes, what each phase of a region is, which members
// open regions of their own. So the sequential model needs no record of what happened, and a failure
// is repeated (as far as the schedule allows) by its seed.
#pragma once

#include <cstdint>

namespace stress {

/// One draw from the tree's source of randomness: a hash of everything that it may depend on.
inline uint64_t mix(uint64_t a, uint64_t b = 0, uint64_t c = 0) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xbf58476d1ce4e5b9u + c * 0x94d049bb133111ebu + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

enum class Phase : uint32_t {
  kWork,      ///< members compute for up to some microseconds
  kBarrier,   ///< what each wrote before is seen by all after
  kNested,    ///< some members open a region
  kSingle,    ///< one member writes, all see it after a barrier
  kLock,      ///< a counter under a lock that blocks on an address
  kHold,      ///< the same lock, and a region is opened while it is held
  kTasks,     ///< members create tasks; a barrier ends them
  kFlags,     ///< a value goes round the team by spinning: needs preemption
  kIdentity,  ///< thread-local variables of all members, read through pointers (strict only)
  kCount
};

constexpr uint32_t kMostPhases = 4;

/// Without preemption nobody may spin for another.
inline bool may_spin = true;

/// What a region is, before it is opened.
struct Region {
  uint64_t seed;
  uint32_t depth;
  uint32_t budget;  ///< about how many members the whole subtree may have
};

inline uint32_t team_size(const Region& r) {
  const uint64_t draw = mix(r.seed, 1);
  // Mostly small teams, now and then one of up to 200.
  const uint32_t most = draw % 16 == 0 ? 200 : draw % 4 == 0 ? 24 : 6;
  const uint32_t size = 1 + static_cast<uint32_t>(mix(r.seed, 2) % most);
  return size < r.budget ? size : r.budget > 1 ? r.budget : 1;
}

inline uint32_t phase_count(const Region& r) {
  return 1 + static_cast<uint32_t>(mix(r.seed, 3) % kMostPhases);
}

inline Phase phase_of(const Region& r, uint32_t phase, uint32_t size) {
  auto kind = static_cast<Phase>(mix(r.seed, 4, phase) % static_cast<uint32_t>(Phase::kCount));
  const bool opens = kind == Phase::kNested || kind == Phase::kHold;
  if (opens && (r.depth >= 6 || r.budget < size + 2)) kind = Phase::kBarrier;
  // Each hand-over costs up to a period of preemption.
  if (kind == Phase::kFlags && (size > 6 || !may_spin)) kind = Phase::kLock;
  return kind;
}

inline bool member_opens(const Region& r, uint32_t phase, uint32_t index) {
  return mix(r.seed, 5 + phase, index) % 3 == 0;
}

/// Of the regions opened in one phase, one per opening member at most.
inline Region inner_region(const Region& r, uint32_t phase, uint32_t index, uint32_t size) {
  const uint32_t share = (r.budget - size) / (size / 3 + 1);
  return {mix(r.seed, 100 + phase, index), r.depth + 1, share > 1 ? share : 1};
}

inline uint64_t member_value(const Region& r, uint32_t phase, uint32_t index) {
  return mix(r.seed, 200 + phase, index);
}

inline uint32_t tasks_of(const Region& r, uint32_t phase, uint32_t index) {
  return static_cast<uint32_t>(mix(r.seed, 300 + phase, index) % 4);
}

/// The sequential model: what the region's members add up, all levels.
inline uint64_t expected_sum(const Region& r, uint64_t* regions) {
  ++*regions;
  const uint32_t size = team_size(r);
  uint64_t sum = 0;
  for (uint32_t phase = 0; phase < phase_count(r); ++phase) {
    const Phase kind = phase_of(r, phase, size);
    for (uint32_t index = 0; index < size; ++index) {
      const uint64_t value = member_value(r, phase, index);
      switch (kind) {
        case Phase::kNested:
        case Phase::kHold:
          if (kind == Phase::kHold ? index == r.seed % size : member_opens(r, phase, index))
            sum += expected_sum(inner_region(r, phase, index, size), regions);
          sum += value;
          break;
        case Phase::kTasks:
          for (uint32_t task = 0; task < tasks_of(r, phase, index); ++task) sum += value + task;
          break;
        default:
          sum += value;
      }
    }
  }
  return sum;
}

}  // namespace stress
