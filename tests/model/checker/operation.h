// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a thread of a model is about to do, the ways in which it may turn out, and which of those
// commute.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <source_location>
#include <vector>

namespace model {

enum class Kind : std::uint8_t {
  kLoad,
  kStore,
  kRmw,
  kCas,
  kFence,  // seq_cst only; weaker fences are local and done at once
  kLight,  // the cheap half of the asymmetric fence pair
  kHeavy,  // the dear half
  kFutexWait,
  kFutexWake,
  kPause,
  kSpurious,  // a futex wait returns for no reason
  kTimeout,   // a timed futex wait runs out
};

enum class Rmw : std::uint8_t { kExchange, kAdd, kSub, kOr, kAnd };

/// Names a message by its writer, so that the name is the same in every order of independent steps.
using MessageId = std::uint32_t;

struct Operation {
  Kind kind = Kind::kLoad;
  Rmw rmw = Rmw::kExchange;
  bool weak = false;   // compare_exchange_weak
  bool timed = false;  // a futex wait with a time limit
  std::uint8_t bytes = 8;
  std::memory_order order = std::memory_order_seq_cst;
  std::memory_order fail_order = std::memory_order_seq_cst;
  int location = -1;
  int wake_count = 0;
  std::uint64_t operand = 0;
  std::uint64_t expected = 0;
  std::source_location at;
};

inline bool is_acquire(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst || order == std::memory_order_consume;
}
inline bool is_release(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}
inline bool is_seq_cst(std::memory_order order) { return order == std::memory_order_seq_cst; }

/// One way in which a thread's pending operation may happen.
struct Transition {
  std::uint8_t thread = 0;
  Kind kind = Kind::kLoad;
  bool reads = false;
  bool writes = false;         // makes a message right after `from`
  bool seq_cst = false;        // an access (not a fence) in the seq_cst order
  bool succeeds = false;       // compare_exchange stores; futex wait blocks
  std::uint32_t location = 0;  // key of the location
  MessageId from = 0;          // message read, or the one before the stored one
  std::uint32_t woken = 0;     // threads that a futex wake wakes, as a bit set

  bool operator==(const Transition&) const = default;
};

/// Touches state that all threads share: the seq_cst order or the futex queues.
inline bool is_global(Kind kind) {
  return kind == Kind::kFence || kind == Kind::kHeavy || kind == Kind::kFutexWait ||
         kind == Kind::kFutexWake || kind == Kind::kSpurious || kind == Kind::kTimeout;
}

/// True if the two steps, both possible now, lead to the same state in either order. A load of a
/// given message commutes with every store: it reads that message before and after it.
inline bool independent(const Transition& a, const Transition& b) {
  if (a.thread == b.thread) return false;
  if (a.kind == Kind::kLight || b.kind == Kind::kLight)
    return a.kind != Kind::kHeavy && b.kind != Kind::kHeavy;
  if (is_global(a.kind)) return !is_global(b.kind) && !b.seq_cst;
  if (is_global(b.kind)) return !a.seq_cst;
  if (a.location != b.location) return true;
  if (a.seq_cst && b.seq_cst) return false;
  return !(a.writes && b.writes && a.from == b.from);
}

/// Which of the sleeping threads a wake of `count` wakes, one set per choice: any single one, or all,
/// or (more than one but not all) those that come first.
inline std::vector<std::uint32_t> choose_woken(std::uint32_t asleep, int count) {
  if (std::popcount(asleep) <= count) return {asleep};
  std::vector<std::uint32_t> choices;
  if (count == 1) {
    for (std::uint32_t rest = asleep; rest != 0; rest &= rest - 1)
      choices.push_back(rest & (~rest + 1));
    return choices;
  }
  std::uint32_t first = 0;
  for (; count > 0; --count, asleep &= asleep - 1) first |= asleep & (~asleep + 1);
  return {first};
}

}  // namespace model
