// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The weak memory of a model: message histories, thread views, and the ways an access may turn out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "operation.h"
#include "view.h"

namespace model {

struct Message {
  MessageId id = 0;
  Time time = 0;
  std::uint64_t value = 0;
  bool consumed = false;  // a read-modify-write read it: nothing may come between the two
  View view;              // what an acquiring reader gets
};

/// One atomic object. Messages are in modification order; the first is the initial value.
struct Location {
  std::uint32_t key = 0;  // creator and its count: the same in every order of independent steps
  int creator = 0;
  Tick created = 0;
  std::string name;
  std::vector<Message> messages;
};

/// `current`: what the thread has seen. `acquirable`: what an acquire fence would add to it.
/// `released`: what it had seen at its last release fence (relaxed stores pass that on).
struct ThreadMemory {
  View current;
  View acquirable;
  View released;
  std::uint32_t messages = 0;
  std::uint32_t locations = 0;
};

struct Outcome {
  std::uint64_t value = 0;    // value read
  std::uint64_t written = 0;  // value stored, if any
  Time time = 0;              // newest message of the location that the thread now knows
  bool succeeded = false;
  bool timed_out = false;
};

/// How a choice counts the seq_cst order: it is the order in which the steps are executed. An
/// access constrains and extends it for its own location only, a fence for all of them.
class Memory {
 public:
  ThreadMemory threads[kMaxThreads];

  void reset() {
    for (auto& t : threads) t = ThreadMemory{};
    sequential_ = heavy_ = light_ = View{};
    for (int i = 0; i < count_; ++i) locations_[i].messages.clear();
    count_ = 0;
  }

  int locations() const { return count_; }
  Location& location(int index) { return locations_[index]; }
  const Location& location(int index) const { return locations_[index]; }

  /// -1 if there are too many.
  int add_location(int thread, std::uint64_t value) {
    if (count_ == kMaxLocations) return -1;
    if (static_cast<std::size_t>(count_) == locations_.size()) locations_.emplace_back();
    Location& location = locations_[count_];
    ThreadMemory& t = threads[thread];
    location.key = static_cast<std::uint32_t>(thread) << 24 | ++t.locations;
    location.creator = thread;
    location.created = t.current.clock[thread];
    location.name = "a" + std::to_string(count_);
    Message& first = location.messages.emplace_back();
    first.id = next_message(thread);
    first.time = kTimeStep;
    first.value = value;
    first.view.seen[count_] = kTimeStep;
    t.current.seen[count_] = kTimeStep;
    tick(thread);
    return count_++;
  }

  /// False if the object's construction does not happen before what `thread` does now.
  bool constructed(int thread, int index) const {
    const Location& location = locations_[index];
    return thread == location.creator ||
           threads[thread].current.clock[location.creator] > location.created;
  }

  /// True if the location has a message after `time`; `value` receives those that differ.
  bool has_newer(int index, Time time, std::uint64_t value) const {
    for (const Message& m : locations_[index].messages)
      if (m.time > time && m.value != value) return true;
    return false;
  }

  /// The thread will not read again what it saw at `time` or before.
  void require_newer(int thread, int index, Time time) {
    for (const Message& m : locations_[index].messages) {
      if (m.time <= time) continue;
      Time& seen = threads[thread].current.seen[index];
      seen = std::max(seen, m.time);
      return;
    }
  }

  /// Appends the ways in which a load, store, rmw or compare-exchange may turn out, newest first.
  void choices(int thread, const Operation& op, bool spurious_cas,
               std::vector<Transition>& out) const {
    const Location& location = locations_[op.location];
    const Time bound = threads[thread].current.seen[op.location];
    const Time sc_bound = std::max(bound, sequential_.seen[op.location]);
    for (std::size_t i = location.messages.size(); i-- > 0;) {
      const Message& m = location.messages[i];
      if (m.time < bound) break;
      const bool allowed = m.time >= (is_seq_cst(op.order) ? sc_bound : bound);
      Transition t;
      t.thread = static_cast<std::uint8_t>(thread);
      t.kind = op.kind;
      t.location = location.key;
      t.from = m.id;
      t.seq_cst = is_seq_cst(op.order);
      switch (op.kind) {
        case Kind::kLoad:
          t.reads = true;
          if (allowed) out.push_back(t);
          break;
        case Kind::kStore:
          t.writes = true;
          if (allowed && !m.consumed) out.push_back(t);
          break;
        case Kind::kRmw:
          t.reads = t.writes = true;
          if (allowed && !m.consumed) out.push_back(t);
          break;
        case Kind::kCas: {
          t.reads = true;
          if (m.value == op.expected) {
            t.writes = t.succeeds = true;
            if (allowed && !m.consumed) out.push_back(t);
          }
          if (m.value == op.expected && !(op.weak && spurious_cas)) break;
          t.writes = t.succeeds = false;
          t.seq_cst = is_seq_cst(op.fail_order);
          if (m.time >= (t.seq_cst ? sc_bound : bound)) out.push_back(t);
          break;
        }
        default:
          break;
      }
    }
  }

  /// Does what `choices` offered.
  Outcome apply(int thread, const Operation& op, const Transition& t) {
    Location& location = locations_[op.location];
    const std::size_t at = find(location, t.from);
    const bool stored = t.writes;
    const std::memory_order order = op.kind == Kind::kCas && !t.succeeds ? op.fail_order : op.order;
    Outcome outcome;
    outcome.value = location.messages[at].value;
    outcome.succeeded = t.succeeds;
    if (t.reads) read(thread, op.location, location.messages[at], order);
    if (stored) {
      outcome.written = op.kind == Kind::kRmw ? modify(op, outcome.value) : op.operand;
      write(thread, op.location, at, outcome.written, order, t.reads);
    }
    outcome.time = threads[thread].current.seen[op.location];
    tick(thread);
    return outcome;
  }

  /// A futex wait is a seq_cst fence and a load; `succeeds` means that it found the expected value
  /// and sleeps. It may read a stale value, as the kernel may while a store is still on its way.
  void futex_choices(int thread, const Operation& op, std::vector<Transition>& out) const {
    const ThreadMemory& m = threads[thread];
    const Time bound = std::max({m.current.seen[op.location], m.acquirable.seen[op.location],
                                 sequential_.seen[op.location]});
    const Location& location = locations_[op.location];
    for (std::size_t i = location.messages.size(); i-- > 0;) {
      if (location.messages[i].time < bound) break;
      Transition t;
      t.thread = static_cast<std::uint8_t>(thread);
      t.kind = op.kind;
      t.location = location.key;
      t.from = location.messages[i].id;
      t.reads = true;
      t.succeeds = location.messages[i].value == op.expected;
      out.push_back(t);
    }
  }
  Outcome futex_read(int thread, const Operation& op, const Transition& t) {
    fence_seq_cst(thread);
    Operation load = op;
    load.order = std::memory_order_relaxed;
    return apply(thread, load, t);
  }

  void fence_local(int thread, std::memory_order order) {
    ThreadMemory& t = threads[thread];
    if (is_acquire(order)) t.current.join(t.acquirable, count_);
    if (is_release(order)) t.released = t.current;
    tick(thread);
  }

  void fence_seq_cst(int thread) {
    ThreadMemory& t = threads[thread];
    t.current.join(t.acquirable, count_);
    t.current.join_seen(sequential_, count_);
    sequential_.join_seen(t.current, count_);
    t.released = t.current;
    tick(thread);
  }

  /// Heavy and light barriers are ordered with each other, light ones among themselves are not: a
  /// light barrier is nothing but the place where a heavy one can put its fence into the thread.
  void barrier_heavy(int thread) {
    threads[thread].current.join_seen(light_, count_);
    fence_seq_cst(thread);
    heavy_.join_seen(threads[thread].current, count_);
  }
  void barrier_light(int thread) {
    light_.join_seen(threads[thread].current, count_);
    threads[thread].current.join_seen(heavy_, count_);
    tick(thread);
  }

  /// Thread `child` starts with what `parent` knows; `parent` learns what a finished `child` knew.
  void fork(int parent, int child) {
    threads[child].current.join(threads[parent].current, count_);
    tick(parent);
    tick(child);
  }
  void join(int parent, int child) { threads[parent].current.join(threads[child].current, count_); }

 private:
  void tick(int thread) { ++threads[thread].current.clock[thread]; }

  MessageId next_message(int thread) {
    return static_cast<MessageId>(thread) << 24 | ++threads[thread].messages;
  }

  static std::size_t find(const Location& location, MessageId id) {
    std::size_t i = location.messages.size() - 1;
    while (location.messages[i].id != id) --i;
    return i;
  }

  static std::uint64_t modify(const Operation& op, std::uint64_t old) {
    std::uint64_t value = op.operand;
    switch (op.rmw) {
      case Rmw::kExchange:
        break;
      case Rmw::kAdd:
        value = old + op.operand;
        break;
      case Rmw::kSub:
        value = old - op.operand;
        break;
      case Rmw::kOr:
        value = old | op.operand;
        break;
      case Rmw::kAnd:
        value = old & op.operand;
        break;
    }
    return op.bytes == 8 ? value : value & ((std::uint64_t{1} << (8 * op.bytes)) - 1);
  }

  void read(int thread, int index, const Message& m, std::memory_order order) {
    ThreadMemory& t = threads[thread];
    t.current.seen[index] = std::max(t.current.seen[index], m.time);
    if (is_acquire(order))
      t.current.join(m.view, count_);
    else
      t.acquirable.join(m.view, count_);
    if (is_seq_cst(order)) sequential_.seen[index] = std::max(sequential_.seen[index], m.time);
  }

  void write(int thread, int index, std::size_t after, std::uint64_t value, std::memory_order order,
             bool rmw) {
    ThreadMemory& t = threads[thread];
    auto& messages = locations_[index].messages;
    Message m;
    m.id = next_message(thread);
    m.value = value;
    const Time before = messages[after].time;
    m.time = after + 1 == messages.size() ? before + kTimeStep
                                          : before + (messages[after + 1].time - before) / 2;
    if (m.time == before) throw std::logic_error("model: too many stores between two others");
    m.view = is_release(order) ? t.current : t.released;
    // A release sequence goes on through read-modify-writes, whatever their order (C++20: through
    // nothing else, not even the same thread's stores).
    if (rmw) {
      m.view.join(messages[after].view, count_);
      messages[after].consumed = true;
    }
    m.view.seen[index] = std::max(m.view.seen[index], m.time);
    t.current.seen[index] = m.time;
    if (is_seq_cst(order)) sequential_.seen[index] = m.time;
    messages.insert(messages.begin() + static_cast<std::ptrdiff_t>(after) + 1, m);
  }

  std::vector<Location> locations_;
  int count_ = 0;
  View sequential_;
  View heavy_;
  View light_;
};

}  // namespace model
