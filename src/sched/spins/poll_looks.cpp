// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/spins/poll_looks.h"

#include <algorithm>

#include "sched/machine_context.h"

namespace bosk::sched {
namespace {

constexpr uintptr_t kPage = 4096;
/// What x86-64 lets a function use below its stack pointer, …
constexpr uintptr_t kBelow = 128;
/// … and the variables of one that is not a leaf.
constexpr uintptr_t kAbove = 256;

}  // namespace

// Others' variables may be there, and what the sanitizers take for nobody's.
__attribute__((no_sanitize("address", "thread"))) uint64_t
state_at_hand(const ucontext_t* interrupted) {
  const uintptr_t sp = interrupted_stack_pointer(interrupted);
  const uintptr_t page = sp & ~(kPage - 1);
  // The page of the stack pointer is there; those beside it may not be.
  const uintptr_t low = std::max(sp - kBelow, page) & ~uintptr_t{7};
  const uintptr_t high = std::min(sp + kAbove, page + kPage);
  uint64_t digest = interrupted_state(interrupted);
  add_to_digest(&digest, interrupted_program_counter(interrupted));
  for (uintptr_t at = low; at + sizeof(uint64_t) <= high; at += sizeof(uint64_t))
    add_to_digest(&digest, *reinterpret_cast<const volatile uint64_t*>(at));
  return digest;
}

/// The state of look `which` (of the first) is there again.
bool PollLooks::is_same_again(uint32_t which, LookGap::Kind gap) {
  // It was in another one since.
  if (last_ != seen_[which]) return true;
  const bool has_run = gap == LookGap::Kind::kOnTime || gap == LookGap::Kind::kAmple;
  return has_run && ++pairs_ == 2;
}

PollLooks::Verdict PollLooks::look(const Thread* thread, uint64_t state, uint64_t now) {
  const LookGap::Kind gap = gap_.begin(now);
  if (gap == LookGap::Kind::kMeasured && thread == thread_) return Verdict::kLookAgain;
  if (thread != thread_) {
    thread_ = thread;
    looks_ = pairs_ = 0;
  }
  for (uint32_t i = 0; i < std::min(looks_, kFirst); ++i) {
    if (seen_[i] != state || !is_same_again(i, gap)) continue;
    thread_ = nullptr;
    return Verdict::kPolls;
  }
  if (looks_ < kFirst) seen_[looks_] = state;
  last_ = state;
  if (++looks_ == kLooks) {
    thread_ = nullptr;
    return Verdict::kComputes;
  }
  return Verdict::kLookAgain;
}

uint64_t PollLooks::end_look(uint64_t now) { return gap_.end(now, looks_ == 1); }

}  // namespace bosk::sched
