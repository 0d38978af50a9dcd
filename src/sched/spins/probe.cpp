// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/spins/probe.h"

#include "sched/thread.h"

namespace bosk::sched {

SpinProbe::Verdict SpinProbe::look(Thread* thread, uintptr_t pc, uint64_t state, bool is_known) {
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
    looks_ = 0;
  }
  for (uint32_t i = 0; i < looks_; ++i)
    if (seen_[i] == state) return spins(thread, state);
  if (looks_ < kLooks) {
    seen_[looks_++] = state;
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
