// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Deadlines in order: a pairing heap whose nodes are part of whoever waits, so that nothing is allocated.
#pragma once

#include <stdint.h>

#include <utility>

namespace bosk::sched {

/// In at most one queue at a time, which does not own it.
struct Deadline {
  uint64_t at = 0;             ///< nanoseconds of CLOCK_MONOTONIC; not changed while it is queued
  Deadline* child = nullptr;   ///< first of those below
  Deadline* next = nullptr;    ///< sibling
  Deadline* before = nullptr;  ///< sibling, of a first child the parent
  bool queued = false;
};

/// The caller has it locked. insert() is O(1); remove() O(log n) amortised, one of them O(n).
class DeadlineQueue {
 public:
  /// The earliest, or null.
  Deadline* first() const { return root_; }

  /// True: it is the earliest now.
  bool insert(Deadline* deadline) {
    deadline->child = deadline->next = deadline->before = nullptr;
    deadline->queued = true;
    root_ = root_ == nullptr ? deadline : meld(root_, deadline);
    return root_ == deadline;
  }

  /// One that is queued here.
  void remove(Deadline* deadline) {
    deadline->queued = false;
    Deadline* below = meld_all(deadline->child);
    if (deadline == root_) {
      root_ = below;
      return;
    }
    if (deadline->before->child == deadline)
      deadline->before->child = deadline->next;
    else
      deadline->before->next = deadline->next;
    if (deadline->next != nullptr) deadline->next->before = deadline->before;
    if (below != nullptr) root_ = meld(root_, below);
  }

 private:
  /// Of two trees one, whose root has no siblings.
  static Deadline* meld(Deadline* a, Deadline* b) {
    if (b->at < a->at) std::swap(a, b);
    b->next = a->child;
    if (b->next != nullptr) b->next->before = b;
    b->before = a;
    a->child = b;
    a->next = a->before = nullptr;
    return a;
  }

  /// Of a list of siblings one tree: in pairs from the first to the last, then all pairs, the last first. In
  /// this order the cost is what is said above.
  static Deadline* meld_all(Deadline* list) {
    Deadline* pairs = nullptr;  // linked by next, the last one first
    while (list != nullptr) {
      Deadline* a = list;
      Deadline* b = a->next;
      list = b != nullptr ? b->next : nullptr;
      if (b != nullptr) a = meld(a, b);
      a->next = pairs;
      pairs = a;
    }
    Deadline* whole = nullptr;
    while (pairs != nullptr) {
      Deadline* rest = pairs->next;
      pairs->next = pairs->before = nullptr;
      whole = whole == nullptr ? pairs : meld(whole, pairs);
      pairs = rest;
    }
    return whole;
  }

  Deadline* root_ = nullptr;
};

}  // namespace bosk::sched
