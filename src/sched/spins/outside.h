// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Initial threads that poll outside of all regions, while members of another one's team want the CPUs: for the lock of a library, say,
// that one of them at a time uses with all threads. Who polls gives its CPU away, again and again. docs/design/scheduler.md, "Polling".
#pragma once

#include <stdint.h>

#include "sched/worker.h"

namespace bosk::sched {

/// The monitor's looks at them. It alone uses it, with the list of pools locked during a look, so that no initial thread ends.
class OutsideWatch {
 public:
  void begin_look();
  void look_at(Pool* pool);
  /// Tells those that may poll. True: somebody was told, or is new, so it is to look again soon.
  bool end_look();
  /// There are several initial threads, of which some had regions open lately.
  bool goes_on() const { return looks_left_ != 0; }

 private:
  static constexpr uint32_t kMostTold = 16;  ///< by one look
  static constexpr uint32_t kLooksAfter = 16;

  uint32_t looks_left_ = 0;
  // Of this look.
  uint64_t now_ = 0;         ///< cycles
  uint32_t cpus_ = 0;        ///< of the process; those of the pool that was looked at last
  uint32_t members_ = 0;     ///< workers of open regions that do not idle
  uint32_t outside_ = 0;     ///< initial threads that have run outside of regions
  bool has_new_ = false;     ///< some that were never looked at
  bool has_rivals_ = false;  ///< a pool with an open region had its CPUs taken
  uint32_t may_poll_ = 0;
  context::Identity* who_may_poll_[kMostTold] = {};
};

/// In a tick of `me`, an initial thread outside of all regions and of system calls, seen like that. True: it
/// polls while somebody wants its CPU, and `kernel->poll_pause_due`; or it is looked at again soon.
bool gives_cpu_away_outside(Worker* w, Thread* me, context::Identity* kernel, const Sight& sight);
/// That pause, at the end of the tick: preemption is on, so that nobody who waits until all are out of the scheduler waits for it. The
/// next tick comes soon after it.
void pause_outside(context::Identity* kernel);

}  // namespace bosk::sched
