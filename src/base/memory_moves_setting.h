// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// BOSK_MEMORY_MOVES: what moves where threads are far from what they work on. Apart from the other settings: the
// policy memory asks.
#pragma once

#include <stdint.h>

namespace bosk::base {

enum class MemoryMoves : uint8_t {
  kAuto,       ///< whatever costs least (policies/memory/decision.h)
  kThreads,    ///< threads, by where most of their memory is
  kData,       ///< memory, at once
  kNextTouch,  ///< memory, when it is touched next
  kMixed,      ///< threads, and then the memory that is far from them still
};

/// Threads may go where their memory is.
inline bool moves_threads(MemoryMoves moves) {
  return moves != MemoryMoves::kData && moves != MemoryMoves::kNextTouch;
}

/// Reads the environment at the first call, as settings() does.
MemoryMoves memory_moves();

}  // namespace bosk::base
