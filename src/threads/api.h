// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What all functions of bosk.h begin with: who calls, and what a handle names.
#pragma once

#include "base/sanitizers.h"
#include "bosk/bosk.h"
#include "omp/team.h"
#include "sched/scheduler.h"
#include "threads/home.h"
#include "threads/records.h"
#include "threads/run.h"

namespace bosk::threads {

/// The caller inside of the library: preemption is off while it lives.
class Inside {
 public:
  explicit Inside(sched::Thread* me) : me_(me) { sched::enter(me); }
  ~Inside() { sched::leave(me_); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  sched::Thread* me_;
};

/// The home, where none may have been needed yet. Null: `*error` says why. Preemption is on.
inline Home* home_for(sched::Thread* me, int* error) {
  Home* h = home();
  // While threads live there no pause ends its workers.
  const bool lives = h != nullptr && h->live.load(std::memory_order_relaxed) != 0;
  return BOSK_LIKELY(lives) ? h : settle(me, false, error);
}

/// A record by its handle, with its guard held, so that it cannot end, move or be given back meanwhile.
template <typename Record>
class Held {
 public:
  /// `only_try`: also null if somebody else has the guard.
  template <typename Table>
  Held(const Table& table, const void* handle, bool only_try = false)
      : record_(table.find(number(handle))) {
    if (record_ == nullptr) return;
    if (!only_try) {
      record_->guard.lock();
    } else if (!record_->guard.try_lock()) {
      record_ = nullptr;
      return;
    }
    if (table.find(number(handle)) == record_ &&
        record_->life.load(std::memory_order_relaxed) != Life::kFree)
      return;
    record_->guard.unlock();
    record_ = nullptr;
  }
  ~Held() {
    if (record_ != nullptr) record_->guard.unlock();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  explicit operator bool() const { return record_ != nullptr; }
  Record* operator->() const { return record_; }
  Record& operator*() const { return *record_; }
  Record* get() const { return record_; }
  /// Before the record is given back.
  void let_go() {
    record_->guard.unlock();
    record_ = nullptr;
  }

 private:
  static uintptr_t number(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }
  Record* record_;
};

struct HeldThread : Held<ThreadRecord> {
  explicit HeldThread(bosk_thread_t handle) : Held(thread_table, handle) {}
};
struct HeldBubble : Held<BubbleRecord> {
  explicit HeldBubble(bosk_bubble_t handle, bool only_try = false)
      : Held(bubble_table, handle, only_try) {}
};

inline bosk_thread_t handle_of(const ThreadRecord* thread) {
  return thread != nullptr ? reinterpret_cast<bosk_thread_t>(ThreadTable::handle_of(thread))
                           : nullptr;
}
inline bosk_bubble_t handle_of(const BubbleRecord* bubble) {
  return bubble != nullptr ? reinterpret_cast<bosk_bubble_t>(BubbleTable::handle_of(bubble))
                           : nullptr;
}

/// Number of the level plus 1; 0: `name` is null. False: there is none of that name.
inline bool find_level(const Home* h, const char* name, uint8_t* number) {
  *number = 0;
  if (name == nullptr) return true;
  const topology::Level* level = h->machine->find_level(name, nullptr);
  if (level == nullptr) return false;
  *number = static_cast<uint8_t>(level - h->machine->level_array + 1);
  return true;
}
/// The domain of that level around the caller; the machine's for 0. Preemption is off.
inline uint32_t domain_here(const Home* h, uint8_t level) {
  return level == 0 ? 0 : h->machine->level_array[level - 1].of_pu[pu_here(h)];
}

/// The entity, whose guard is held, is off its queue or out of what holds it (and out of its bubble, if it
/// is in one): true. False: it runs, waits or is open, and nothing was done.
bool take_off(sched::TreeEntity& entity);
/// What the entity may be on. Its owner may be writing the pointer (whole, because pointers are): a guess at where to
/// look, which the lock found there confirms or not.
#if defined(BOSK_TSAN)
__attribute__((no_sanitize("thread"), noinline))
#endif
inline sched::RunQueue*
guess_holder(const sched::TreeEntity& entity) {
  return static_cast<sched::RunQueue*>(*const_cast<sched::Holder* const volatile*>(&entity.holder));
}
/// The same, if it is a queue of the machine; else null.
inline sched::RunQueue* guess_queue(const Home* h, const sched::TreeEntity& entity) {
  sched::RunQueue* queue = guess_holder(entity);
  const auto at = reinterpret_cast<uintptr_t>(queue);
  const auto first = reinterpret_cast<uintptr_t>(&h->queues.of(0));
  return at - first < sizeof(sched::RunQueue) * h->machine->n_domains ? queue : nullptr;
}

/// The thread, whose guard is held, is off its queue and still in its bubble: the caller runs it.
bool take_to_run(ThreadRecord& thread);
/// If it is on a queue, it is the next of its priority there.
void bring_forward(ThreadRecord& thread);
/// Its priority, wherever it is. Its guard is held. `nobody_has_it`: it is asleep, or the caller itself. What
/// somebody else has gets its priority from take_wanted_priority(), by whoever has it.
void change_priority(sched::TreeEntity& entity, int32_t priority, bool nobody_has_it,
                     std::atomic<int32_t>& wanted);
void take_wanted_priority(sched::TreeEntity& entity, std::atomic<int32_t>& wanted);

/// Puts the thread, which nobody else has, into the bubble. Both guards are held.
void put_into(Home* h, BubbleRecord& bubble, ThreadRecord& thread, bool runs);

}  // namespace bosk::threads
