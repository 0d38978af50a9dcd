// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a thread of a model has seen: the newest message per location, and a vector clock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace model {

inline constexpr int kMaxThreads = 8;     // 0 is the main one, which sets up and checks the end
inline constexpr int kMaxLocations = 64;  // atomics per execution

/// Place of a message in its location's modification order. Messages are far enough apart that a
/// late store fits between two older ones.
using Time = std::uint32_t;
inline constexpr Time kTimeStep = 1u << 16;

/// Counts the visible operations of one thread; a pair (thread, tick) names a moment.
using Tick = std::uint32_t;

/// `seen` bounds from below what a thread may still read (coherence); `clock` is happens-before.
/// The two differ: a relaxed load and a seq_cst fence raise `seen` but order nothing.
struct View {
  std::array<Time, kMaxLocations> seen{};
  std::array<Tick, kMaxThreads> clock{};

  void join_seen(const View& other, int locations) {
    for (int i = 0; i < locations; ++i) seen[i] = std::max(seen[i], other.seen[i]);
  }
  void join(const View& other, int locations) {
    join_seen(other, locations);
    for (int i = 0; i < kMaxThreads; ++i) clock[i] = std::max(clock[i], other.clock[i]);
  }
};

}  // namespace model
