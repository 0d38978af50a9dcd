// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One execution of a model: its threads, what each is about to do, and the steps taken so far.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fiber.h"
#include "memory.h"
#include "options.h"
#include "sites.h"
#include "trace.h"

namespace model {

/// Thrown through a model thread to unwind it when its execution is given up.
struct Abandoned {};

class Execution {
 public:
  enum class Phase { kSetUp, kRunning, kEnd, kUnwinding };
  enum class State { kReady, kPaused, kAsleep, kDone };

  explicit Execution(const Options& options) : options_(options) {}
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  static Execution*& current() {
    static Execution* execution = nullptr;
    return execution;
  }

  // ---- for the explorer -------------------------------------------------------------------

  void set_up(const std::function<void()>& body) {
    memory_.reset();
    trace_.clear();
    failure_.clear();
    at_end_ = nullptr;
    count_ = 1;
    running_ = 0;
    spurious_wakes_ = timeouts_ = spurious_cas_ = 0;
    stuttered_ = false;
    phase_ = Phase::kSetUp;
    guarded(body);
    phase_ = Phase::kRunning;
    for (int i = 1; i < count_ && !failed(); ++i) resume(i);
    settle();
  }

  /// Takes one step, and everything after it that no other thread can notice.
  void step(const Transition& t) {
    if (static_cast<int>(trace_.size()) >= options_.max_steps) {
      record_failure("execution too long: a loop that waits needs A::pause()");
      return;
    }
    apply(t);
    settle();
  }

  /// Everything that can happen next. `stuck`: nothing but luck would wake the waiting threads.
  void enabled(std::vector<Transition>& out, bool& stuck) const {
    for (int i = 1; i < count_; ++i)
      if (threads_[i]->state == State::kReady) thread_choices(i, out);
    stuck = out.empty();
    for (int i = 1; i < count_; ++i) {
      const Thread& thread = *threads_[i];
      if (thread.state != State::kAsleep) continue;
      const bool timeout = thread.pending.timed && options_.timeouts > 0;
      if (timeout && (stuck || timeouts_ < options_.timeouts))
        out.push_back(luck(i, Kind::kTimeout));
      if (!stuck && spurious_wakes_ < options_.spurious_wakes)
        out.push_back(luck(i, Kind::kSpurious));
    }
    if (!out.empty()) stuck = false;
  }

  bool done() const {
    for (int i = 1; i < count_; ++i)
      if (threads_[i]->state != State::kDone) return false;
    return true;
  }

  void end() {
    for (int i = 1; i < count_; ++i) memory_.join(0, i);
    phase_ = Phase::kEnd;
    if (at_end_) guarded(at_end_);
  }

  /// Unwinds what is left. After it the body's objects are gone.
  void give_up() {
    phase_ = Phase::kUnwinding;
    for (int i = 1; i < count_; ++i) {
      if (threads_[i]->state != State::kDone) resume(i);
      threads_[i]->body = nullptr;
    }
    at_end_ = nullptr;
  }

  void record_deadlock() {
    std::string text = "no thread can go on:";
    for (int i = 1; i < count_; ++i) {
      const Thread& thread = *threads_[i];
      if (thread.state == State::kPaused) {
        text += "\n  T" + std::to_string(i) + " livelock: spins for ever on";
        for (const Mark& mark : thread.reads)
          text += " " + memory_.location(mark.location).name + "=" + show_value(mark.value);
      } else if (thread.state == State::kAsleep) {
        text += "\n  T" + std::to_string(i) + " deadlock: asleep for ever in futex_wait on " +
                memory_.location(thread.pending.location).name + " " + show_site(thread.pending.at);
      }
    }
    record_failure(text);
  }

  bool failed() const { return !failure_.empty(); }
  bool stuttered() const { return stuttered_; }
  const std::string& failure() const { return failure_; }
  std::string failure_with_trace() const { return failure_ + "\n" + show_trace(trace_, memory_); }
  bool thread_enabled(int i) const { return threads_[i]->state == State::kReady; }
  std::set<std::string>& outcomes() { return outcomes_; }
  std::map<Site, SiteUse>* sites = nullptr;  // collected if set

  // ---- for the threads of the model -------------------------------------------------------

  void spawn(std::function<void()> body) {
    if (phase_ != Phase::kSetUp || count_ == kMaxThreads) {
      fail("model::spawn: only from the body, and at most 7 threads");
      return;
    }
    const int i = count_++;
    if (static_cast<int>(threads_.size()) <= i) threads_.resize(static_cast<std::size_t>(i) + 1);
    if (!threads_[i]) threads_[i] = std::make_unique<Thread>();
    Thread& thread = *threads_[i];
    thread.owner = this;
    thread.index = i;
    thread.body = std::move(body);
    thread.state = State::kReady;
    thread.reads.clear();
    thread.last_reads.clear();
    thread.fiber.prepare(&fiber_main, &thread);
    memory_.fork(0, i);
  }

  void at_end(std::function<void()> body) { at_end_ = std::move(body); }

  int running() const { return running_; }
  bool unwinding() const { return phase_ == Phase::kUnwinding; }
  const View& view() const { return memory_.threads[running_].current; }
  Memory& memory() { return memory_; }

  /// Ends the execution as a failure; does not return, except while it is being unwound.
  void fail(const std::string& text) {
    if (unwinding()) return;
    record_failure(text);
    throw Abandoned{};
  }

  int add_location(std::uint64_t value) {
    const int index = memory_.add_location(running_, value);
    if (index < 0) fail("model: too many atomics");
    return index;
  }

  /// Does an operation of the running thread, when the explorer says so.
  Outcome perform(Operation op) {
    if (unwinding()) return {};
    if (options_.weakening) weaken(op, *options_.weakening);
    if (sites && phase_ == Phase::kRunning) collect(op, *sites);
    if (op.location >= 0 && !memory_.constructed(running_, op.location))
      fail("an atomic is used before its construction is visible " + show_site(op.at));
    if (op.kind == Kind::kFence && !is_seq_cst(op.order)) {
      memory_.fence_local(running_, op.order);
      trace_.push_back({running_, op, {}, {}});
      return {};
    }
    if (phase_ != Phase::kRunning) return perform_alone(op);
    Thread& thread = *threads_[running_];
    thread.pending = op;
    if (op.kind == Kind::kPause) begin_pause(thread, stuttered_);
    thread.fiber.suspend();
    if (unwinding()) throw Abandoned{};
    return thread.outcome;
  }

 private:
  struct Mark {
    int location;
    Time time;
    std::uint64_t value;
    bool operator==(const Mark&) const = default;
  };
  struct Thread {
    Execution* owner = nullptr;
    int index = 0;
    State state = State::kReady;
    Operation pending;
    Outcome outcome;
    std::vector<Mark> reads;       // since the last pause, newest per location
    std::vector<Mark> last_reads;  // those of the pause before
    std::function<void()> body;
    Fiber fiber;
  };

  static void fiber_main(void* argument) {
    auto* thread = static_cast<Thread*>(argument);
    if (!thread->owner->unwinding()) thread->owner->guarded(thread->body);
    thread->state = State::kDone;
  }

  void guarded(const std::function<void()>& body) {
    try {
      body();
    } catch (const Abandoned&) {
    } catch (const std::exception& error) {
      record_failure(std::string("exception: ") + error.what());
    }
  }

  void record_failure(const std::string& text) {
    if (failure_.empty()) failure_ = text.empty() ? "failure" : text;
  }

  void resume(int i) {
    const int before = running_;
    running_ = i;
    threads_[i]->fiber.resume();
    running_ = before;
  }

  void thread_choices(int i, std::vector<Transition>& out) const {
    const Thread& thread = *threads_[i];
    const Operation& op = thread.pending;
    Transition t;
    t.thread = static_cast<std::uint8_t>(i);
    t.kind = op.kind;
    switch (op.kind) {
      case Kind::kLoad:
      case Kind::kStore:
      case Kind::kRmw:
      case Kind::kCas:
        memory_.choices(i, op, spurious_cas_ < options_.spurious_cas, out);
        break;
      case Kind::kFutexWait:
        memory_.futex_choices(i, op, out);
        break;
      case Kind::kFutexWake:
        wake_choices(op, t, out);
        break;
      default:
        out.push_back(t);
    }
  }

  void wake_choices(const Operation& op, Transition t, std::vector<Transition>& out) const {
    t.location = memory_.location(op.location).key;
    std::uint32_t asleep = 0;
    for (int i = 1; i < count_; ++i)
      if (threads_[i]->state == State::kAsleep && threads_[i]->pending.location == op.location)
        asleep |= 1u << i;
    for (const std::uint32_t woken : choose_woken(asleep, op.wake_count)) {
      t.woken = woken;
      out.push_back(t);
    }
  }

  Transition luck(int i, Kind kind) const {
    Transition t;
    t.thread = static_cast<std::uint8_t>(i);
    t.kind = kind;
    t.location = memory_.location(threads_[i]->pending.location).key;
    return t;
  }

  void apply(const Transition& t) {
    Thread& thread = *threads_[t.thread];
    const Operation op = thread.pending;
    Outcome outcome;
    switch (t.kind) {
      case Kind::kFence:
        memory_.fence_seq_cst(t.thread);
        break;
      case Kind::kLight:
        memory_.barrier_light(t.thread);
        break;
      case Kind::kHeavy:
        memory_.barrier_heavy(t.thread);
        break;
      case Kind::kFutexWait:
        outcome = memory_.futex_read(t.thread, op, t);
        break;
      case Kind::kFutexWake:
        memory_.fence_seq_cst(t.thread);
        break;
      case Kind::kPause:
        break;
      case Kind::kSpurious:
        ++spurious_wakes_;
        break;
      case Kind::kTimeout:
        ++timeouts_;
        outcome.timed_out = true;
        break;
      default:
        outcome = memory_.apply(t.thread, op, t);
        break;
    }
    if (t.kind == Kind::kCas && !t.succeeds && outcome.value == op.expected) ++spurious_cas_;
    trace_.push_back({t.thread, op, t, outcome});
    if (t.reads) note_read(thread, op, t, outcome);
    thread.outcome = outcome;
    if (t.kind == Kind::kFutexWait && t.succeeds) {
      thread.state = State::kAsleep;
      return;
    }
    for (int i = 1; i < count_; ++i) {
      if ((t.woken >> i & 1) == 0) continue;
      threads_[i]->state = State::kReady;
      resume(i);
    }
    thread.state = State::kReady;
    if (!failed()) resume(t.thread);
  }

  static void note_read(Thread& thread, const Operation& op, const Transition& t,
                        const Outcome& outcome) {
    const Mark mark{op.location, outcome.time, t.writes ? outcome.written : outcome.value};
    for (Mark& old : thread.reads) {
      if (old.location != op.location) continue;
      old = mark;
      return;
    }
    thread.reads.push_back(mark);
  }

  // A turn of a waiting loop that read the same messages as the turn before is not worth a third.
  // A pause after no read at all (a back-off of several pauses) waits for nothing.
  static void begin_pause(Thread& thread, bool& stuttered) {
    if (thread.reads.empty()) return;
    thread.state = State::kPaused;
    if (thread.reads == thread.last_reads) stuttered = true;
    thread.last_reads = thread.reads;
  }

  /// Lets waiting loops go on that would see something new. Nobody can notice when that happens,
  /// so it needs no choice.
  void settle() {
    for (int i = 1; i < count_ && !failed() && !stuttered_; ++i) {
      Thread& thread = *threads_[i];
      while (thread.state == State::kPaused && !failed() && !stuttered_) {
        bool news = false;
        for (const Mark& mark : thread.reads)
          news = news || memory_.has_newer(mark.location, mark.time, mark.value);
        if (!news) break;
        if (thread.reads.size() == 1)
          memory_.require_newer(i, thread.reads[0].location, thread.reads[0].time);
        thread.reads.clear();
        thread.state = State::kReady;
        resume(i);
      }
    }
  }

  /// Set-up and end run alone, after or before everything else: they see the newest of all.
  Outcome perform_alone(const Operation& op) {
    if (op.kind == Kind::kFutexWait || op.kind == Kind::kPause) {
      fail("model: waiting outside a thread " + show_site(op.at));
      return {};
    }
    if (op.location < 0) return {};
    std::vector<Transition> all;
    memory_.choices(running_, op, false, all);
    if (all.empty()) return {};
    return memory_.apply(running_, op, all.front());
  }

  const Options& options_;
  Memory memory_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Step> trace_;
  std::string failure_;
  std::set<std::string> outcomes_;
  std::function<void()> at_end_;
  Phase phase_ = Phase::kSetUp;
  int count_ = 1;
  int running_ = 0;
  int spurious_wakes_ = 0;
  int timeouts_ = 0;
  int spurious_cas_ = 0;
  bool stuttered_ = false;
};

}  // namespace model
