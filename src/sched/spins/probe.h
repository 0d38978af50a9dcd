// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Does a thread wait in a loop of the program's own? Whoever waits for its flag may be behind it.
#pragma once

#include <stdint.h>

#include "sched/spins/look_gap.h"

namespace bosk::sched {

struct Thread;

/// What a tick sees of the thread that it interrupts.
struct Sight {
  uintptr_t pc;
  uint64_t state;            ///< a digest of its registers but the program counter
  bool behind_call = false;  ///< of the kernel, which has just returned
};

/// A thread that computes is never twice at about the same place with the same values in all registers;
/// one that polls a flag is, within a few looks some microseconds apart. So a thread that two ticks in a
/// row find at about the same place is looked at again, until kLooks have found other values each, before the tick does anything.
/// That a look finds what the last one found counts only if the thread has run in between (look_gap.h), and not lost its CPU. Where a
/// call of the kernel ends threads were found to stand for several looks that came on time: these do not count.
/// Threads that turned out to compute are left in peace for more and more ticks. One that is in the state in which it was found to
/// spin the last time needs no second look.
///
/// Whether the threads that take turns here get on is told by the same states: who waits for the next of something has other
/// values in its registers than when it waited for the one before.
///
/// A worker's; used by its preemption handler alone.
class SpinProbe {
 public:
  enum class Verdict : uint8_t { kComputes, kSpins, kLookAgain };

  static constexpr uint32_t kLooks = 4;

  /// A look at `thread` by a tick at `now` (cycles). kLookAgain: the caller comes back after end_look(), and the thread goes on until then.
  /// `absences`: how often the kernel thread has left its CPU; looked at if the probe watches(). `is_known`: members of its team were found
  /// to poll there.
  Verdict look(Thread* thread, const Sight& sight, uint64_t now, uint64_t absences,
               bool is_known = false);
  /// After kLookAgain, at the tick's end: in how many ns the next look is to come; 0: at once.
  uint64_t end_look(uint64_t now, uint64_t absences) {
    absences_ = absences;
    return gap_.end(now, times_ == 1);
  }
  /// That cannot be had: it comes with an ordinary tick.
  void leave_to_ticks() { gap_.leave_to_ticks(); }

  /// It is to be looked at again.
  bool watches(const Thread* thread) const { return thread_ == thread; }

  /// Some of those that were found to spin lately had got on since they were found to before: the sooner each has its turn, the
  /// sooner all are done. A loop that keeps its counter in memory looks like a spin, and like one that does not get on.
  bool get_on() const { return fruitless_ < kPatience; }

 private:
  /// More threads than take turns on a worker usually, so that each is found once more before it is said that none gets on.
  static constexpr uint32_t kPatience = 32;

  Verdict spins(Thread* thread, uint64_t state);
  bool has_seen(uint64_t state) const;
  bool has_run(const Sight& sight, LookGap::Kind gap, uint64_t absences);

  Thread* thread_ = nullptr;  ///< under observation
  uint32_t looks_ = 0;
  uint32_t times_ = 0;  ///< with those that told nothing
  uint32_t pairs_ =
      0;  ///< in a row that found the same, program counter and all, when there was time for something else
  uint64_t seen_[kLooks] = {};
  uint64_t last_state_ = 0;
  uintptr_t last_pc_ = 0;
  uint64_t absences_ = 0;
  LookGap gap_;
  uint32_t fruitless_ = 0;  ///< verdicts in a row about threads that had not got on
};

}  // namespace bosk::sched
