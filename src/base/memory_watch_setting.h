// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// BOSK_MEMORY_WATCH: who looks whether threads reach for memory of other nodes. Apart from the other settings: the
// service thread of the policy memory asks.
#pragma once

#include <stdint.h>

namespace bosk::base {

enum class MemoryWatch : uint8_t {
  kAuto,      ///< counters of the hardware; where there are none, samples of pages
  kOff,       ///< nobody
  kCounters,  ///< counters, or nobody
  kPages,     ///< samples of pages
};

/// Reads the environment at the first call, as settings() does.
MemoryWatch memory_watch();

}  // namespace bosk::base
