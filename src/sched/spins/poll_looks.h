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

/// A digest of what the interrupted code has at hand: its registers, and the variables on its stack around the stack pointer.
uint64_t state_at_hand(const ucontext_t* interrupted);

/// A worker's; used by its preemption handler alone.
class PollLooks {
 public:
  enum class Verdict : uint8_t { kComputes, kPolls, kLookAgain };

  /// A tick has interrupted `thread` at `pc` in `state` (state_at_hand()). kLookAgain: the next look is to come some microseconds later,
  /// if at all; who has more to do at each turn than kLooks looks tell apart computes.
  Verdict look(const Thread* thread, uintptr_t pc, uint64_t state);

 private:
  static constexpr uint32_t kLooks = 4;

  const Thread* thread_ = nullptr;
  uintptr_t pc_ = 0;
  uint32_t looks_ = 0;
  uint64_t seen_[kLooks] = {};
};

}  // namespace bosk::sched
