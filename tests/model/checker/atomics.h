// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The Atomics policy of the checker: the same interface as bosk::base::StdAtomics.
#pragma once

#include <time.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "execution.h"

namespace model {

using Where = std::source_location;

/// Stands for std::atomic<T>; every call is a step of the model and names its line in the trace.
template <class T>
class atomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);

 public:
  explicit atomic(T value = T{}) : location_(Execution::current()->add_location(bits(value))) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(std::memory_order order = std::memory_order_seq_cst,
         const Where& at = Where::current()) const {
    Operation op = operation(Kind::kLoad, order, at);
    return value(Execution::current()->perform(op).value);
  }
  void store(T desired, std::memory_order order = std::memory_order_seq_cst,
             const Where& at = Where::current()) {
    Operation op = operation(Kind::kStore, order, at);
    op.operand = bits(desired);
    Execution::current()->perform(op);
  }
  T exchange(T desired, std::memory_order order = std::memory_order_seq_cst,
             const Where& at = Where::current()) {
    return rmw(Rmw::kExchange, desired, order, at);
  }
  T fetch_add(T by, std::memory_order order = std::memory_order_seq_cst,
              const Where& at = Where::current())
    requires std::is_integral_v<T>
  {
    return rmw(Rmw::kAdd, by, order, at);
  }
  T fetch_sub(T by, std::memory_order order = std::memory_order_seq_cst,
              const Where& at = Where::current())
    requires std::is_integral_v<T>
  {
    return rmw(Rmw::kSub, by, order, at);
  }
  T fetch_or(T by, std::memory_order order = std::memory_order_seq_cst,
             const Where& at = Where::current())
    requires std::is_integral_v<T>
  {
    return rmw(Rmw::kOr, by, order, at);
  }
  T fetch_and(T by, std::memory_order order = std::memory_order_seq_cst,
              const Where& at = Where::current())
    requires std::is_integral_v<T>
  {
    return rmw(Rmw::kAnd, by, order, at);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success,
                               std::memory_order failure, const Where& at = Where::current()) {
    return compare_exchange(expected, desired, success, failure, false, at);
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success,
                             std::memory_order failure, const Where& at = Where::current()) {
    return compare_exchange(expected, desired, success, failure, true, at);
  }
  bool compare_exchange_strong(T& expected, T desired,
                               std::memory_order order = std::memory_order_seq_cst,
                               const Where& at = Where::current()) {
    return compare_exchange(expected, desired, order, failure_order(order), false, at);
  }
  bool compare_exchange_weak(T& expected, T desired,
                             std::memory_order order = std::memory_order_seq_cst,
                             const Where& at = Where::current()) {
    return compare_exchange(expected, desired, order, failure_order(order), true, at);
  }

  int location() const { return location_; }

 private:
  static std::uint64_t bits(T value) {
    std::uint64_t out = 0;
    std::memcpy(&out, &value, sizeof value);
    return out;
  }
  static T value(std::uint64_t bits) {
    T out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
  }
  static std::memory_order failure_order(std::memory_order order) {
    if (order == std::memory_order_acq_rel) return std::memory_order_acquire;
    return order == std::memory_order_release ? std::memory_order_relaxed : order;
  }
  Operation operation(Kind kind, std::memory_order order, const Where& at) const {
    Operation op;
    op.kind = kind;
    op.order = order;
    op.location = location_;
    op.bytes = sizeof(T);
    op.at = at;
    return op;
  }
  T rmw(Rmw what, T by, std::memory_order order, const Where& at) {
    Operation op = operation(Kind::kRmw, order, at);
    op.rmw = what;
    op.operand = bits(by);
    return value(Execution::current()->perform(op).value);
  }
  bool compare_exchange(T& expected, T desired, std::memory_order success,
                        std::memory_order failure, bool weak, const Where& at) {
    Operation op = operation(Kind::kCas, success, at);
    op.fail_order = failure;
    op.weak = weak;
    op.expected = bits(expected);
    op.operand = bits(desired);
    const Outcome outcome = Execution::current()->perform(op);
    if (!outcome.succeeded) expected = value(outcome.value);
    return outcome.succeeded;
  }

  int location_;
};

/// Data that is not atomic: two accesses, one of them a write, that are not ordered by
/// happens-before end the execution as a data race.
template <class T>
class plain {
 public:
  explicit(false) plain(T value = T{}) : value_(value) { on_write(Where{}); }
  plain(const plain&) = delete;
  plain& operator=(const plain&) = delete;

  T get(const Where& at = Where::current()) const {
    on_read(at);
    return value_;
  }
  void set(T value, const Where& at = Where::current()) {
    on_write(at);
    value_ = value;
  }
  // Conversions cannot be told their caller's line: a race is then named by the steps before it.
  operator T() const { return get(Where{}); }
  plain& operator=(T value) {
    set(value, Where{});
    return *this;
  }

 private:
  void on_read(const Where& at) const {
    Execution& e = *Execution::current();
    if (e.unwinding()) return;
    const int me = e.running();
    if (e.view().clock[writer_] < written_) race("read", "write", writer_, at);
    read_[me] = std::max<Tick>(read_[me], e.view().clock[me] + 1);
  }
  void on_write(const Where& at) {
    Execution& e = *Execution::current();
    if (e.unwinding()) return;
    const int me = e.running();
    if (e.view().clock[writer_] < written_) race("write", "write", writer_, at);
    for (int i = 0; i < kMaxThreads; ++i)
      if (read_[i] != 0 && e.view().clock[i] < read_[i] - 1) race("write", "read", i, at);
    writer_ = me;
    written_ = e.view().clock[me];
  }
  static void race(const char* what, const char* other, int thread, const Where& at) {
    Execution& e = *Execution::current();
    e.fail(std::string("data race: ") + what + " by T" + std::to_string(e.running()) +
           (at.line() == 0 ? "" : " " + show_site(at)) + " and " + other + " by T" +
           std::to_string(thread));
  }

  T value_;
  int writer_ = 0;
  Tick written_ = 0;
  mutable std::array<Tick, kMaxThreads> read_{};  // moment of the last read + 1; 0: none
};

/// The policy. Fences and barriers are steps too.
struct ModelAtomics {
  template <class T>
  using atomic = model::atomic<T>;
  template <class T>
  using plain = model::plain<T>;

  static void fence(std::memory_order order, const Where& at = Where::current()) {
    Operation op;
    op.kind = Kind::kFence;
    op.order = order;
    op.at = at;
    Execution::current()->perform(op);
  }
  static void light_barrier(const Where& at = Where::current()) { simple(Kind::kLight, at); }
  static void heavy_barrier(const Where& at = Where::current()) { simple(Kind::kHeavy, at); }

  /// One turn of a loop that waits for another thread, without a bound: goes on only when
  /// something the loop has read since its last pause has changed.
  static void pause(const Where& at = Where::current()) { simple(Kind::kPause, at); }
  static void pause_for_holder(uint32_t, const Where& at = Where::current()) { pause(at); }
  /// One turn of a loop that gives up by itself: no wait, no step.
  static void relax() {}

  /// False if the time ran out, which happens only with Options::timeouts.
  template <class T>
  static bool futex_wait(const atomic<T>* word, std::type_identity_t<T> expected,
                         const timespec* timeout = nullptr, const Where& at = Where::current()) {
    static_assert(sizeof(T) == 4);
    Operation op;
    op.kind = Kind::kFutexWait;
    op.location = word->location();
    op.bytes = 4;
    op.timed = timeout != nullptr;
    op.expected = static_cast<std::uint32_t>(expected);
    op.at = at;
    return !Execution::current()->perform(op).timed_out;
  }
  template <class T>
  static void futex_wake(const atomic<T>* word, int count, const Where& at = Where::current()) {
    Operation op;
    op.kind = Kind::kFutexWake;
    op.location = word->location();
    op.wake_count = count;
    op.at = at;
    Execution::current()->perform(op);
  }

 private:
  static void simple(Kind kind, const Where& at) {
    Operation op;
    op.kind = kind;
    op.at = at;
    Execution::current()->perform(op);
  }
};

}  // namespace model
