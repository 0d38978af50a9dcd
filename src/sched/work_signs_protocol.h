// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One domain's word of the signs that say where in the machine something is queued (work_signs.h).
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

/// A bit for the domain's own queue, and one for each child (or group of children, where there are more
/// than bits) below which something is queued. Bits are *sticky*: raised by who queues something where
/// the bit is down, and lowered by who comes looking and finds nothing.
///
/// What must not happen is that something stays queued and no bit says so.
/// - The bit of a queue changes under the queue's lock only, as does whether the queue is empty.
/// - A domain's bit in its parent's word is raised by whoever changes the domain's word from 0. It is
///   lowered by who has seen the domain's word at 0, and who then looks at that word again.
///
/// All of these are read-modify-writes. Let the last change from 0 of a word be X's. If somebody lowers
/// the bit in the parent after X has raised it there, it reads X's raise or what other
/// read-modify-writes have made of it, so that (release and acquire) its second look sees X's change or
/// something later, and it raises the bit again unless the word is really 0. If it lowers it before, X's
/// raise is still to come.
template <class A>
class WorkSign {
 public:
  static constexpr uint64_t kOwnQueue = uint64_t{1} << 63;
  static constexpr uint32_t kChildBits = 63;

  /// For looking; out of date at once. relaxed: after lower() on the parent, that acquires.
  uint64_t bits() const { return word_.load(std::memory_order_relaxed); }

  /// True: the word was 0, and the caller must raise this domain's bit in its parent.
  bool raise(uint64_t bit) {
    // release: publishes the change of the child's word that the bit stands for.
    return word_.fetch_or(bit, std::memory_order_release) == 0;
  }
  /// The caller has seen that there is nothing where the bit points to, and must look again (at the
  /// own queue: it holds the lock and need not).
  void lower(uint64_t bit) {
    // acquire: so that the second look sees what was there when the bit was raised.
    word_.fetch_and(~bit, std::memory_order_acquire);
  }

 private:
  typename A::template atomic<uint64_t> word_{0};
};

}  // namespace bosk::sched
