// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For the report: does a thread, which as far as the runtime knows computes, wait for others in a loop of the program's own?
//
// The sampler has it looked at now and then by a tick of its own, and ordinary ticks look, too. As the probe of slices does (probe.h),
// but with more in the digest: where a slice too short costs little, a page that says "polls" of a loop that counts in memory is wrong.
#pragma once

#include <stdint.h>
#include <ucontext.h>

#include "sched/doing.h"

namespace bosk::sched {

/// A digest of what the interrupted code has at hand: its registers, the program counter, and the variables on its stack around the stack pointer.
uint64_t state_at_hand(const ucontext_t* interrupted);

/// A worker's; used by its preemption handler alone.
class PollLooks {
 public:
  enum class Verdict : uint8_t { kComputes, kPolls, kLookAgain };

  /// So many, and whoever was never again in the state of one of the first few computes: it is asked what it did then, not what it has
  /// come to do since. A loop of ten states is found out 24 times in 25, one of thirty two times in three.
  static constexpr uint32_t kLooks = 12;
  static constexpr uint32_t kFirst = 3;

  /// A tick has interrupted `thread` in `state` (state_at_hand()). kLookAgain: the next look is to come some microseconds later.
  Verdict look(const Thread* thread, uint64_t state);

 private:
  const Thread* thread_ = nullptr;
  uint32_t looks_ = 0;
  uint64_t seen_[kFirst] = {};
};

}  // namespace bosk::sched
