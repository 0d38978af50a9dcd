// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calling a sleeping worker to queued tasks: whom, so that one call wakes one, and no call is lost.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

/// Tasks that are queued are looked for by one who is awake; as long as that is so nobody else need be
/// woken for them. A team's flag (Bubble::queued_work) says that it is so. Let a *helper* be who may run
/// the team's tasks and sleeps. What must not be: a task is queued, a helper sleeps, and nobody is awake
/// who is going to look.
///
///   Queues a task:              Goes to sleep:                   Takes a task, and goes away to run it:
///
///     push                        word.open(); list.add()          is there a helper?
///     light barrier               heavy barrier                    tasks left?  call one or two
///     flag is 0? flag = 1,        flag is 1, or called? no sleep   else flag = 0, heavy barrier,
///       light barrier,            asleep                             tasks left? flag = 1, call one
///       call one                  word.close(), list.remove()
///
/// Who looks and finds nothing does as in the last two lines on the right before it sleeps.
///
/// Who sets the flag and who goes to sleep each store and then look: one of the two sees the other. So
/// when the flag goes from 0 to 1 either a helper is called, or there is none, and none goes to sleep
/// while the flag is 1. Who is called looks, and leaves in one of three ways: it calls the next (tasks
/// were left), it sets the flag to 0 and every processor passes a fence (then who queues sees 0, or its
/// task is found by the second look), or it finds that it cannot help after all, and calls the next in its
/// place, of those with higher numbers only, so that this ends. Who takes a task without having been
/// called sees all helpers that went to sleep before the flag was set, or another was called for them.
///
/// A call is a word of the sleeper's, so that two callers do not wake one: of open and closed and a caller's
/// team, only open may become a team. The list is where callers find open words. Its bit is taken before
/// the word is tried: a caller that comes late takes the bit of the next sleep, and then finds that sleep's
/// word open, or somebody has called it, or it is over. So no sleep loses its bit uncalled.
template <class A, class Work>
class CallWord {
 public:
  /// Owner, before it is listed. relaxed: the heavy barrier before it sleeps.
  void open() { word_.store(kOpen, std::memory_order_relaxed); }
  /// Owner, after the heavy barrier: it was called already, perhaps by who saw it awake still and for a
  /// team that it does not look at. relaxed: that barrier.
  bool is_called() const { return word_.load(std::memory_order_relaxed) > kClosed; }
  /// Owner, awake: what it was called for, or null.
  Work* close() {
    // acquire: it sees the flag that the caller saw or set, and who slept then.
    const uintptr_t was = word_.exchange(kClosed, std::memory_order_acquire);
    return was > kClosed ? reinterpret_cast<Work*>(was) : nullptr;
  }
  /// Caller: true, and the owner will look; the caller wakes it now.
  bool call(Work* work) {
    uintptr_t open = kOpen;
    // release: see close(). On failure another one calls, or the owner is awake: nothing is read.
    return word_.compare_exchange_strong(open, reinterpret_cast<uintptr_t>(work),
                                         std::memory_order_release, std::memory_order_relaxed);
  }

 private:
  static constexpr uintptr_t kOpen = 0;
  static constexpr uintptr_t kClosed = 1;
  typename A::template atomic<uintptr_t> word_{kClosed};
};

/// Who of 64 sleeps. That who looks here sees who is listed, or is seen, is due to the barriers of both.
template <class A>
class SleeperList {
 public:
  /// release: who takes the bit finds the word open.
  void add(uint32_t i) { bits_.fetch_or(uint64_t{1} << i, std::memory_order_release); }
  void remove(uint32_t i) { take(i); }
  uint64_t bits() const { return bits_.load(std::memory_order_relaxed); }
  /// False: somebody else has it.
  bool take(uint32_t i) {
    const uint64_t bit = uint64_t{1} << i;
    // acquire: see add().
    return (bits() & bit) != 0 && (bits_.fetch_and(~bit, std::memory_order_acquire) & bit) != 0;
  }

 private:
  typename A::template atomic<uint64_t> bits_{0};
};

}  // namespace bosk::sched
