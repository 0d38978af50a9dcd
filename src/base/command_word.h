// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Handing something to one parked kernel thread: the word it sleeps on.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::base {

/// One kernel thread waits, others give it commands, at most one at a time (the giver knows that the
/// last one was taken, because it owns what the kernel thread worked on). Used where a user-level
/// thread or a worker's role changes its kernel thread.
///
/// Why no command is lost: give() stores the command before it wakes; the kernel's futex compares the
/// word under its own lock before it lets the waiter sleep. What the giver wrote before (the saved
/// context) is visible to the taker through release and acquire on the word.
template <class A>
class CommandWord {
 public:
  static constexpr uint32_t kNone = 0;

  /// Sleeps until there is a command, takes it and returns it.
  uint32_t take() {
    uint32_t command;
    while ((command = word_.load(std::memory_order_acquire)) == kNone) A::futex_wait(&word_, kNone);
    word_.store(kNone, std::memory_order_relaxed);
    return command;
  }

  /// Any kernel thread. `command` is not kNone.
  void give(uint32_t command) {
    word_.store(command, std::memory_order_release);
    A::futex_wake(&word_, 1);
  }

 private:
  typename A::template atomic<uint32_t> word_{kNone};
};

}  // namespace bosk::base
