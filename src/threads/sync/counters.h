// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Barriers, semaphores, read-write locks and once of bosk/sync.h. Results are its codes.
//
// All but once hand over: whoever gives finds the first that waits and gives it what it waits for, under the lock of
// the list. So order is that of coming, nobody overtakes, and a wait that times out has got nothing.
#pragma once

#include <stdint.h>

#include <atomic>

#include "threads/sync/wait_list.h"

namespace bosk::threads {

class Barrier {
 public:
  void init(uint32_t count);
  int destroy();
  int wait();

 private:
  WaitList list_;
  uint32_t count_ = 0;  ///< 0: destroyed, or never initialised
  uint32_t arrived_ = 0;
};

class Semaphore {
 public:
  void init(uint32_t value);
  int destroy();
  int wait(uint64_t deadline);
  int try_wait();
  int post();
  int value(uint32_t* value);

 private:
  static constexpr uint32_t kAlive = 0x5e3a;
  WaitList list_;
  uint32_t value_ = 0;  ///< 0 while somebody waits
  uint32_t state_ = 0;
};

class ReadWriteLock {
 public:
  void init();
  int destroy();
  int read(uint64_t deadline) { return enter(false, true, deadline); }
  int write(uint64_t deadline) { return enter(true, true, deadline); }
  int try_read() { return enter(false, false, kForever); }
  int try_write() { return enter(true, false, kForever); }
  int unlock();

 private:
  static constexpr uint32_t kDead = 0xdead;
  int enter(bool writes, bool may_wait, uint64_t deadline);
  Waiter* hand_over();

  WaitList list_;
  int32_t users_ = 0;  ///< readers, or -1: a writer
  uint32_t state_ = 0;
  Owner writer_;
};

/// The state names the process in which the function is running: in a child that another thread forked meanwhile
/// nobody runs it, and whoever comes is the first.
class Once {
 public:
  int call(void (*function)());

 private:
  enum Phase : uint32_t { kNotYet, kRuns, kAwaited, kDone, kPhases };
  static_assert(kPhases == 4);

  std::atomic<uint32_t> state_{
      kNotYet};  ///< a phase; while it runs: of this process, times kPhases
  Owner runner_;
};

}  // namespace bosk::threads
