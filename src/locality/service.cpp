// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The service thread's loop.
#include "locality/service.h"

#include <errno.h>

#include <algorithm>

#include "locality/book_upkeep.h"
#include "locality/costs.h"
#include "locality/decider.h"
#include "memory/manager.h"
#include "sched/clock.h"
#include "sched/service_thread.h"
#include "sched/services.h"

namespace bosk::locality {
namespace {

using policies::MemoryRequest;
using policies::MemoryTrigger;
using policies::trigger_bit;

/// Between two looks at all: a program attaches its arrays in a row.
constexpr uint64_t kLeastPauseNs = 1'000'000;
/// PUs may be idle for ever, and nothing be better elsewhere.
constexpr uint64_t kMostPauseNs = 256'000'000;

struct Service {
  policies::MemoryRequests requests;
  /// Each is set once, the first ones first. release, acquire: they are constant, so nothing else comes with them; in a forked child as
  /// in its parent.
  std::atomic<const Adapter*> adapters[kMostAdapters]{};
  std::atomic<int> tid{0};  ///< written by the thread itself, and looked at for its own number
  sched::ServiceThread thread;
};
constinit Service the_service;

void decide(uint64_t name, MemoryTrigger trigger) {
  for_each_adapter([&](const Adapter& adapter, uint32_t) {
    if (adapter.decide != nullptr) adapter.decide(name, trigger);
  });
}

void decide_all(MemoryTrigger trigger) {
  for_each_adapter([&](const Adapter& adapter, uint32_t) {
    if (adapter.decide_all != nullptr) adapter.decide_all(trigger);
  });
}

/// When it was looked at all bubbles last, or at one because somebody is idle, and how long ago that should at least be for who is
/// only idle. He may take back at once what goes where its memory is, and threads that wait for each other are idle all the
/// time: less and less often, until something is attached.
struct Pace {
  uint64_t looked_at = 0;
  uint64_t pause = kLeastPauseNs;

  uint64_t next(uint32_t asked) const {
    return looked_at +
           ((asked & trigger_bit(MemoryTrigger::kAttached)) != 0 ? kLeastPauseNs : pause);
  }
  void looked(bool changed) {
    pause = changed ? kLeastPauseNs : std::min(2 * pause, kMostPauseNs);
    looked_at = sched::clock_now();
  }
};

/// True: there was nothing to do, but there will be at `*next`; kForever: when somebody asks.
bool serve_some(Pace* pace, uint64_t* next) {
  policies::MemoryRequests& asked = the_service.requests;
  bool idle = true;
  for (MemoryRequest request; asked.take(&request);) {
    const bool only_idle = request.trigger == MemoryTrigger::kIdle;
    if (only_idle && sched::clock_now() < pace->next(trigger_bit(MemoryTrigger::kIdle))) {
      // With all others, when it is time.
      asked.put_off(MemoryTrigger::kIdle);
      continue;
    }
    decide(request.name, request.trigger);
    if (only_idle) pace->looked(false);
    idle = false;
  }
  uint32_t all = asked.all();
  *next = sched::kForever;
  if (all == 0) return idle;
  *next = pace->next(all);
  if (sched::clock_now() < *next) return idle;
  all = asked.take_all();
  const bool changed = (all & trigger_bit(MemoryTrigger::kAttached)) != 0;
  const bool remote = (all & trigger_bit(MemoryTrigger::kRemote)) != 0;
  decide_all(changed  ? MemoryTrigger::kAttached
             : remote ? MemoryTrigger::kRemote
                      : MemoryTrigger::kIdle);
  pace->looked(changed);
  return false;
}

void run(sched::ServiceThread& service) {
  Pace pace;
  the_service.tid.store(base::thread_id(), std::memory_order_relaxed);
  while (!service.is_stopping()) {
    const uint32_t seen = the_service.requests.news();
    uint64_t next;
    if (!serve_some(&pace, &next)) continue;
    next = std::min({next, watch_remote_accesses(), keep_books()});
    timespec left;
    if (next != sched::kForever && !sched::time_left(next, &left)) continue;
    if (!service.is_stopping())
      the_service.requests.wait(seen, next != sched::kForever ? &left : nullptr);
  }
  end_watch();
  forget_books();
}

void wake() { the_service.requests.tell(); }

void stop() {
  the_service.requests.set_served(false);
  the_service.thread.stop(wake);
}

void forget_after_fork() {
  the_service.thread.forget_after_fork();
  forget_deciding_after_fork();
  the_service.requests.forget();
  the_service.tid.store(0, std::memory_order_relaxed);
  forget_watch();
  forget_books();
}

constexpr sched::OtherService kThisService{stop, forget_after_fork};

/// False: it was there before.
bool add(const Adapter* adapter) {
  for (std::atomic<const Adapter*>& place : the_service.adapters) {
    const Adapter* there = nullptr;
    if (place.compare_exchange_strong(there, adapter, std::memory_order_acq_rel)) return true;
    if (there == adapter) return false;
  }
  return false;
}

}  // namespace

const Adapter* adapter_at(uint32_t index) {
  return index < kMostAdapters ? the_service.adapters[index].load(std::memory_order_acquire)
                               : nullptr;
}

policies::MemoryRequests& requests() { return the_service.requests; }

bool is_served(const Adapter* adapter) {
  if (!the_service.thread.runs()) return false;
  bool found = false;
  for_each_adapter([&](const Adapter& there, uint32_t) { found = found || &there == adapter; });
  return found;
}

int serve(sched::Thread* me, const Adapter* adapter) {
  // Read while there is a thread that may do so.
  const memory::AreaTable* areas = memory::areas();
  if (areas == nullptr || costs_of(areas->nodes().machine()) == nullptr) return ENOMEM;
  sched::other_service.store(&kThisService, std::memory_order_release);
  const bool is_new = add(adapter);
  const int error = the_service.thread.ensure(me, nullptr, run);
  if (error != 0) return error;
  the_service.requests.set_served(true);
  if (is_new) wake();
  return 0;
}

bool on_service() { return the_service.tid.load(std::memory_order_relaxed) == base::thread_id(); }

}  // namespace bosk::locality
