// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who registered for which event.
//
// Whoever tells an event walks through a table without a lock: callbacks may register and unregister,
// themselves included, other threads may do so meanwhile, and a child of fork() must not find a lock
// that nobody will open. Writers have one among themselves. A slot is worth what its id says: ids grow
// and are never used twice, so that a reader that finds the same id before and after has read one
// registration whole.
#include <atomic>

#include "abi/goacc/device.h"
#include "abi/goacc/profiling.h"
#include "base/message.h"
#include "base/spinlock.h"
#include "context/thread_block.h"

namespace bosk::acc {
namespace {

/// One callback for one event. Writers change it under the lock.
struct Slot {
  std::atomic<uint64_t> id;  ///< 0: free
  std::atomic<Callback> callback;
  std::atomic<int> event;
  std::atomic<bool> on;
  uint32_t registrations;  ///< for writers only

  // A reader that acquires one of the new values sees in id that it changed.
  void free() { id.store(0, std::memory_order_relaxed); }
  void fill(uint64_t new_id, int new_event, Callback new_callback) {
    event.store(new_event, std::memory_order_release);
    callback.store(new_callback, std::memory_order_release);
    on.store(true, std::memory_order_release);
    registrations = 1;
    // release: who acquires the id sees the rest.
    id.store(new_id, std::memory_order_release);
  }
};

/// Far more than there are events and tools.
constexpr uint32_t kMostSlots = 512;

constinit Slot slots[kMostSlots]{};
constinit std::atomic<uint32_t> slots_used{0};  // where walks end; slots behind were never filled
constinit std::atomic<uint64_t> last_id{0};
constinit base::SpinLock writers;

// Bit of an event: it is switched off. Bit of acc_ev_none: all are. relaxed: a switch that nothing
// else hangs on; a thread that looks at the same time may see either state.
constinit std::atomic<uint32_t> switched_off{0};
// Nothing can be taken back or switched off before acc_prof_register was called.
constinit std::atomic<bool> ever_registered{false};

class Writer {
 public:
  Writer() {
    context::preempt_disable();
    writers.lock();
  }
  ~Writer() {
    writers.unlock();
    context::preempt_enable();
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Slot* find(int event, Callback callback) {
    for (uint32_t i = 0; i < used(); ++i) {
      Slot& slot = slots[i];
      if (slot.id.load(std::memory_order_relaxed) != 0 &&
          slot.event.load(std::memory_order_relaxed) == event &&
          slot.callback.load(std::memory_order_relaxed) == callback) {
        return &slot;
      }
    }
    return nullptr;
  }

  /// False: the table is full.
  bool add(int event, Callback callback) {
    uint32_t i = 0;
    while (i < used() && slots[i].id.load(std::memory_order_relaxed) != 0) ++i;
    if (i == kMostSlots) return false;
    const uint64_t id = last_id.load(std::memory_order_relaxed) + 1;
    slots[i].fill(id, event, callback);
    // release, both: who sees the number sees the slot.
    if (i == used()) slots_used.store(i + 1, std::memory_order_release);
    last_id.store(id, std::memory_order_release);
    return true;
  }

 private:
  // relaxed: only writers write it.
  static uint32_t used() { return slots_used.load(std::memory_order_relaxed); }
};

bool valid(int event, int registration) {
  return event >= kNoEvent && event < kEventsEnd && registration >= kRegister &&
         registration <= kTogglePerThread;
}

// The way back is another one: the last library to see a start is the first to see the end.
bool ends_something(int event) {
  switch (event) {
    case kDeviceInitEnd:
    case kDeviceShutdownEnd:
    case kEnterDataEnd:
    case kExitDataEnd:
    case kUpdateEnd:
    case kComputeConstructEnd:
    case kEnqueueLaunchEnd:
    case kEnqueueUploadEnd:
    case kEnqueueDownloadEnd:
    case kWaitEnd:
      return true;
    default:
      return false;
  }
}

void toggle(int event, Callback callback, bool on) {
  if (callback == nullptr) {
    const uint32_t bit = uint32_t{1} << event;
    if (on) {
      switched_off.fetch_and(~bit, std::memory_order_relaxed);
    } else {
      switched_off.fetch_or(bit, std::memory_order_relaxed);
    }
    return;
  }
  if (event == kNoEvent) return;
  Writer writer;
  if (Slot* slot = writer.find(event, callback)) slot->on.store(on, std::memory_order_release);
}

void toggle_this_thread(int event, Callback callback, bool on) {
  if (event != kNoEvent || callback != nullptr) return;
  // The switch is part of what a thread has with its device.
  ensure_attached();
  this_thread().muted = !on;
}

struct Walk {
  int event;
  bool backwards;
  uint64_t newest;  ///< later registrations are for the next event
  uint64_t at;      ///< the id of the last callback
  Callback callback;

  /// The next registration that is on. False: there is none.
  bool next() {
    uint64_t best = 0;
    const uint32_t size = slots_used.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < size; ++i) {
      const Slot& slot = slots[i];
      const uint64_t id = slot.id.load(std::memory_order_acquire);
      if (id == 0 || id > newest || (backwards ? id >= at : id <= at)) continue;
      if (best != 0 && (backwards ? id < best : id > best)) continue;
      // acquire, all: the second look at the id comes after them.
      const bool wanted = slot.event.load(std::memory_order_acquire) == event &&
                          slot.on.load(std::memory_order_acquire);
      const Callback found = slot.callback.load(std::memory_order_acquire);
      if (!wanted || slot.id.load(std::memory_order_relaxed) != id) continue;
      best = id;
      callback = found;
    }
    if (best == 0) return false;
    at = best;
    return true;
  }
};

}  // namespace

void register_callback(int event, Callback callback, int registration) {
  ever_registered.store(true, std::memory_order_release);
  if (!valid(event, registration)) return;
  if (registration == kToggle) return toggle(event, callback, true);
  if (registration == kTogglePerThread) return toggle_this_thread(event, callback, true);
  if (callback == nullptr) return;
  bool room = true;
  {
    Writer writer;
    if (Slot* slot = writer.find(event, callback)) {
      ++slot->registrations;
    } else {
      room = writer.add(event, callback);
    }
  }
  if (!room) {
    base::gomp_fatal("acc_prof_register: more than %u callbacks are registered", kMostSlots);
  }
}

void unregister_callback(int event, Callback callback, int registration) {
  if (!valid(event, registration) || !ever_registered.load(std::memory_order_acquire)) return;
  if (registration == kToggle) return toggle(event, callback, false);
  if (registration == kTogglePerThread) return toggle_this_thread(event, callback, false);
  Writer writer;
  Slot* slot = writer.find(event, callback);
  if (slot != nullptr && --slot->registrations == 0) slot->free();
}

bool events_wanted() {
  if (!ever_registered.load(std::memory_order_acquire)) return false;
  const ThreadState& thread = this_thread();
  return !thread.in_callback && !thread.muted;
}

void tell_callbacks(ProfInfo* prof, EventInfo* info, ApiInfo* api) {
  const int event = prof->event;
  const uint32_t bits = uint32_t{1} << kNoEvent | uint32_t{1} << event;
  if ((switched_off.load(std::memory_order_relaxed) & bits) != 0) return;
  const bool backwards = ends_something(event);
  Walk walk{.event = event,
            .backwards = backwards,
            .newest = last_id.load(std::memory_order_acquire),
            .at = backwards ? UINT64_MAX : 0,
            .callback = nullptr};
  while (walk.next()) {
    const bool was = this_thread().in_callback;
    this_thread().in_callback = true;
    walk.callback(prof, info, api);
    this_thread().in_callback = was;
  }
}

}  // namespace bosk::acc
