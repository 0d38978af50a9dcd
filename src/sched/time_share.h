// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdint.h>

namespace bosk::sched {

/// What became of CPU time.
enum class TimeShare : uint8_t {
  kComputing,  ///< the program's code in regions
  kImbalance,  ///< idle, or waiting for the others, although a region is open
  kBarrier,    ///< waiting in barriers
  kWaiting,    ///< for locks and tasks
  kYielding,   ///< of members that gave their turns away
  kPolling,    ///< the program's code, where it waits for others in a loop
  kBlocked,  ///< the program's code, but without a CPU: it waits in the kernel, or others have the CPU
  kRuntime,  ///< regions being opened and closed
  kSerial,   ///< outside of regions, with all who wait for the next one
};
constexpr uint32_t kTimeShares = 9;

}  // namespace bosk::sched
