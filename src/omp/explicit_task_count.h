// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counting the children of a task and the tasks of a taskgroup without a read-modify-write where
// the owner itself ends them.
//
// A count is a pair of words. `mine` belongs to the owner (the thread that executes the parent, or
// that opened the taskgroup) and is written with plain stores: what was created, less what ended on
// the owner's own thread, less what the owner has collected from the other word. `others` collects,
// by read-modify-write, what ended elsewhere. What is unfinished is mine - others.
//
// `others` also says what the owner is doing, so that whoever ends the last child knows whom to
// tell, by one and the same atomic step:
//
//   running    others = ended elsewhere                                             (0 .. 2^60)
//   waiting    others = bias - unfinished; the bias itself when none is left   (bias-2^60 .. bias]
//   finished   others = -unfinished; who brings it to 0 completes the parent itself (.. 0)
//
// In the running state an addition never gives 0, so 0 always means the third.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::omp {

/// Halves of the words of a task: see Task::children.
constexpr uint64_t kFinishedChild = 1;
constexpr uint64_t kEndedDescendants = uint64_t{1} << 32;
constexpr uint64_t kWholeChild = kFinishedChild + kEndedDescendants;

constexpr uint64_t kWaitsForFinished = uint64_t{1} << 61;  ///< taskwait: until the low half is 0
constexpr uint64_t kWaitsForAll = uint64_t{1} << 62;       ///< barriers, taskgroups: until all is 0

inline uint32_t finished_half(uint64_t word) { return static_cast<uint32_t>(word); }

/// The owner is blocked, or about to block, until others come.
inline bool owner_waits(uint64_t others) {
  const uint64_t part = (others - 1) >> 60;
  return part == 1 || part == 3;
}

/// `others` was reached by adding `added` while the owner waits: has its wait ended?
inline bool wait_has_ended(uint64_t others, uint64_t added) {
  if (others == kWaitsForAll) return true;
  return ((others - 1) >> 60) == 1 && finished_half(others) == 0 && finished_half(added) != 0;
}

// The words are std::atomic, or a model checker's.

template <class Word>
inline uint64_t own_count(const Word& mine) {
  return mine.load(std::memory_order_relaxed);
}
/// Owner only: no other thread writes the word, so load and store need not be one step.
template <class Word>
inline void own_add(Word& mine, uint64_t by) {
  mine.store(mine.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

/// Owner only, running: takes over what ended elsewhere; returns what is unfinished.
template <class Word>
inline uint64_t collect(Word& mine, Word& others) {
  uint64_t left = mine.load(std::memory_order_relaxed);
  if (others.load(std::memory_order_relaxed) != 0) {
    // acquire: what the children did happens before whatever their end lets the parent do.
    left -= others.exchange(0, std::memory_order_acquire);
    mine.store(left, std::memory_order_relaxed);
  }
  return left;
}

/// Owner only: from running to waiting; returns `others`. The owner's word is void until
/// stop_waiting().
template <class Word>
inline uint64_t start_waiting(Word& mine, Word& others, uint64_t bias) {
  const uint64_t by = bias - mine.load(std::memory_order_relaxed);
  // release: with the state goes the owner's `waiter`. What ended before is acquired by
  // stop_waiting(), which reads this or a later value.
  return others.fetch_add(by, std::memory_order_release) + by;
}

/// Owner only: back to running; returns what is unfinished.
template <class Word>
inline uint64_t stop_waiting(Word& mine, Word& others, uint64_t bias) {
  const uint64_t left = bias - others.exchange(0, std::memory_order_acquire);
  mine.store(left, std::memory_order_relaxed);
  return left;
}

/// Owner only, running: the parent itself has finished, with `left` from collect() not zero. True:
/// all have ended meanwhile, and the caller ends the parent; else whoever ends the last one does.
template <class Word>
inline bool finish_before_children(Word& others, uint64_t left) {
  // acq_rel: hands on what the parent did; if it is the last, takes over what the children did.
  return others.fetch_sub(left, std::memory_order_acq_rel) == left;
}

/// Anybody but the owner: adds, and tells who is to be woken. `waiter` is read before the addition,
/// while what is added still keeps the owner's record alive; afterwards it may be gone. It is
/// constant once the owner has ever waited, so the value that was read stays right.
template <class Waiter>
struct Added {
  uint64_t others;
  Waiter to_wake;  ///< zero: nobody
};
template <class Word, class WaiterWord>
inline auto add_for_owner(Word& others, const WaiterWord& waiter, uint64_t by) {
  using Waiter = decltype(waiter.load(std::memory_order_relaxed));
  // acquire: with the waiting state comes the owner's `waiter`.
  uint64_t seen = others.load(std::memory_order_acquire);
  for (;;) {
    const Waiter whom = owner_waits(seen) ? waiter.load(std::memory_order_relaxed) : Waiter{};
    // release: hands on what this thread did. What others did who added before it came with `seen`,
    // for whoever ends a finished parent: in that state the word only grows, so the value that is
    // replaced is the one that was read.
    if (others.compare_exchange_weak(seen, seen + by, std::memory_order_release,
                                     std::memory_order_acquire)) {
      const uint64_t now = seen + by;
      return Added<Waiter>{now, wait_has_ended(now, by) ? whom : Waiter{}};
    }
  }
}

}  // namespace bosk::omp
