// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For the report: does a thread, which as far as the runtime knows computes, wait for others in a loop of the program's own?
//
// The sampler has it looked at now and then by a tick of its own, and ordinary ticks look, too. As the probe of slices does (probe.h),
// but with more in the digest: where a slice too short costs little, a page that says "polls" of a loop that counts in memory is wrong.
#pragma once

#include <stdint.h>
#include <ucontext.h>

#include "sched/doing.h"
#include "sched/spins/look_gap.h"

namespace bosk::sched {

/// A digest of what the interrupted code has at hand: its registers, the program counter, and the variables on its stack around the stack pointer.
uint64_t state_at_hand(const ucontext_t* interrupted);

/// A worker's; used by its preemption handler alone.
///
/// It takes two pairs of looks in a row that find the same state, far enough apart. Who was in another state meanwhile has come back, and that
/// is enough.
class PollLooks {
 public:
  enum class Verdict : uint8_t { kComputes, kPolls, kLookAgain };

  /// So many, and whoever was never again in the state of one of the first few computes: it is asked what it did then, not what it has
  /// come to do since. A loop of ten states is found out 24 times in 25, one of thirty two times in three.
  static constexpr uint32_t kLooks = 12;
  static constexpr uint32_t kFirst = 3;

  /// A tick that began at `now` (cycles) has interrupted `thread` in `state` (state_at_hand()).
  Verdict look(const Thread* thread, uint64_t state, uint64_t now);
  /// After kLookAgain, at the tick's end: in how many ns the next look is to come; 0: at once.
  uint64_t end_look(uint64_t now);
  /// That cannot be had: it comes with an ordinary tick.
  void leave_to_ticks() { gap_.leave_to_ticks(); }

 private:
  bool is_same_again(uint32_t which, LookGap::Kind gap);

  const Thread* thread_ = nullptr;
  uint32_t looks_ = 0;
  uint32_t pairs_ = 0;  ///< of looks in a row that found the same
  uint64_t seen_[kFirst] = {};
  uint64_t last_ = 0;  ///< state
  LookGap gap_;
};

}  // namespace bosk::sched
