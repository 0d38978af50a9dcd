// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/spins/probe.h"

#include "sched/thread.h"

namespace bosk::sched {

bool SpinProbe::has_seen(uint64_t state) const {
  for (uint32_t i = 0; i < looks_; ++i)
    if (seen_[i] == state) return true;
  return false;
}

/// It has been in this state before. Since then, that is.
bool SpinProbe::has_run(const Sight& sight, LookGap::Kind gap, uint64_t absences) {
  if (sight.state != last_state_) return true;
  if (sight.pc != last_pc_) return gap != LookGap::Kind::kTooShort;
  // On a CPU all the time, as far as the kernel knows; what the machine under it does shows in that not all looks are like that.
  constexpr uint32_t kAmplePairs = 2;
  constexpr uint32_t kPairs = 6;
  const bool counts =
      gap == LookGap::Kind::kAmple || (gap == LookGap::Kind::kOnTime && !sight.behind_call);
  if (absences != absences_ || !counts) return false;
  return ++pairs_ >= (gap == LookGap::Kind::kAmple ? kAmplePairs : kPairs);
}

SpinProbe::Verdict SpinProbe::look(Thread* thread, const Sight& sight, uint64_t now,
                                   uint64_t absences, bool is_known) {
  const uintptr_t pc = sight.pc;
  const uint64_t state = sight.state;
  /// Whoever tells nothing so often computes: the tick has others to think of.
  constexpr uint32_t kMostTimes = 3 * kLooks;
  constexpr uintptr_t kNear = 128;
  constexpr uint8_t kMostPause = 64;
  const bool near = pc - thread->tick_pc + kNear <= 2 * kNear;
  thread->tick_pc = pc;
  if (is_known || (near && state != 0 && state == thread->spin_state)) return spins(thread, state);
  if (thread != thread_) {
    if (!near) {
      thread->probe_pause = thread->next_probe_pause = 0;
      return Verdict::kComputes;
    }
    if (thread->probe_pause != 0) {
      --thread->probe_pause;
      return Verdict::kComputes;
    }
    thread_ = thread;
    looks_ = times_ = pairs_ = 0;
  }
  const LookGap::Kind gap = gap_.begin(now);
  if (gap == LookGap::Kind::kMeasured && looks_ != 0) return Verdict::kLookAgain;
  const bool seen = has_seen(state);
  if (seen && has_run(sight, gap, absences)) return spins(thread, state);
  if (looks_ < kLooks && ++times_ < kMostTimes) {
    if (!seen) seen_[looks_++] = state;
    if (state != last_state_ || pc != last_pc_) pairs_ = 0;
    last_state_ = state;
    last_pc_ = pc;
    return Verdict::kLookAgain;
  }
  thread_ = nullptr;
  if (thread->next_probe_pause < kMostPause)
    thread->next_probe_pause = static_cast<uint8_t>(2 * thread->next_probe_pause + 1);
  thread->probe_pause = thread->next_probe_pause;
  return Verdict::kComputes;
}

SpinProbe::Verdict SpinProbe::spins(Thread* thread, uint64_t state) {
  thread_ = nullptr;
  thread->next_probe_pause = 0;
  if (thread->spin_state != state)
    fruitless_ = 0;
  else if (fruitless_ < kPatience)
    ++fruitless_;
  thread->spin_state = state;
  return Verdict::kSpins;
}

}  // namespace bosk::sched
