// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Something that is done whenever all have asked for it, and nobody waits for the others.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::base {

/// One more of `of` has come. True: the last one, who sees what the others did before; the next round begins. A single step, so
/// that nobody is forgotten who comes again at once.
inline bool comes_last(std::atomic<uint32_t>* come, uint32_t of) {
  uint32_t before = come->load(std::memory_order_relaxed);
  uint32_t after;
  do {
    after = before + 1 >= of ? 0 : before + 1;
  } while (!come->compare_exchange_weak(before, after, std::memory_order_acq_rel,
                                        std::memory_order_relaxed));
  return after == 0;
}

}  // namespace bosk::base
