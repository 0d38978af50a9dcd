// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Carriers: threads on donors. A small stock per worker, one cache for the process, refilled by the
// factory.
#include <errno.h>
#include <string.h>

#include <new>

#include "base/message.h"
#include "context/annotations.h"
#include "sched/scheduler.h"

namespace bosk::sched {
namespace {

constexpr uint32_t kRequestSlots = 128;

struct Cache {
  base::SpinLock lock;  ///< guards free_list
  Thread* free_list = nullptr;
  std::atomic<uint32_t> available{0};
  std::atomic<uint32_t> event{0};  ///< futex: counts arrivals and failures
  std::atomic<uint32_t> in_flight{0};
  std::atomic<int> error{0};          ///< of the last request, 0 if it was served
  std::atomic<uint32_t> starving{0};  ///< workers in wait_for_carrier()
  std::atomic<uint32_t> made{0};
  size_t stack_size = 0;
  std::atomic<uint32_t> slot_used[kRequestSlots] = {};
  context::DonorRequest slots[kRequestSlots];
};
constinit Cache cache;

void carrier_main(void* identity) {
  auto* me = static_cast<Thread*>(static_cast<context::Identity*>(identity)->records);
  context::acquire_from(me);
  after_switch(me);
  carrier_loop(me);
}

void donor_finished(context::DonorRequest* request, context::Identity* identity) {
  // In the factory.
  if (identity != nullptr) {
    static_assert(sizeof(Thread) <= context::kRecordRoom);
    auto* thread = new (identity->records) Thread;
    thread->sp = request->initial_sp;
    thread->own = identity;
    thread->run_as(identity);
    thread->thread_kind = ThreadKind::kCarrier;
    identity->block->self = thread;
    set_serve_floor(thread, identity->stack_low, identity->stack_high);
    cache.lock.lock();
    thread->link = cache.free_list;
    cache.free_list = thread;
    cache.lock.unlock();
    cache.available.fetch_add(1, std::memory_order_release);
    cache.made.fetch_add(1, std::memory_order_relaxed);
  }
  cache.error.store(identity != nullptr ? 0 : request->error, std::memory_order_relaxed);
  cache.slot_used[request - cache.slots].store(0, std::memory_order_release);
  cache.in_flight.fetch_sub(1, std::memory_order_release);
  cache.event.fetch_add(1, std::memory_order_release);
  // One that starves takes it; a thousand who look at once would take its time. If none does, somebody may
  // wait for the factory to be done: take_all_carriers().
  base::futex_wake(&cache.event,
                   cache.starving.load(std::memory_order_relaxed) != 0 ? 1 : INT32_MAX);
}

}  // namespace

void set_carrier_stack_size(size_t bytes) { cache.stack_size = bytes; }

void request_carriers(uint32_t count) {
  // Who asks may come again a microsecond later, a thousand times until the factory has had a processor: what is under way
  // counts, in proportion to what a program like this has needed.
  const uint32_t enough = count + cache.made.load(std::memory_order_relaxed) / 8;
  if (cache.in_flight.load(std::memory_order_relaxed) >= enough) return;
  for (uint32_t i = 0; i < kRequestSlots && count > 0; ++i) {
    if (cache.slot_used[i].load(std::memory_order_relaxed) != 0 ||
        cache.slot_used[i].exchange(1, std::memory_order_acquire) != 0)
      continue;
    context::DonorRequest* request = &cache.slots[i];
    *request = context::DonorRequest{};
    request->stack_size = cache.stack_size;
    request->entry = carrier_main;
    request->finished = donor_finished;
    cache.in_flight.fetch_add(1, std::memory_order_relaxed);
    if (!context::request_donor(request)) {
      const int error = request->error;
      cache.in_flight.fetch_sub(1, std::memory_order_relaxed);
      cache.slot_used[i].store(0, std::memory_order_release);
      cache.error.store(error, std::memory_order_relaxed);
      return;
    }
    --count;
  }
}

/// Who finds none and has something else to do comes again, and so may all others: somebody must have asked the factory. (Who takes the
/// last one asks, but not if one is under way, which may be the very one that it took.) After a refusal wait_for_carrier() asks.
static Thread* none_is_there() {
  if (cache.in_flight.load(std::memory_order_relaxed) == 0 &&
      cache.error.load(std::memory_order_relaxed) == 0)
    request_carriers(1);
  return nullptr;
}

Thread* take_carrier_from_cache(Worker* w) {
  if (cache.available.load(std::memory_order_acquire) == 0) return none_is_there();
  cache.lock.lock();
  Thread* carrier = cache.free_list;
  uint32_t left = 0;
  if (carrier != nullptr) {
    cache.free_list = carrier->link;
    left = cache.available.fetch_sub(1, std::memory_order_relaxed) - 1;
  }
  cache.lock.unlock();
  if (carrier == nullptr) return none_is_there();
  // Keep ahead of the demand, so that a thread that blocks seldom waits for the factory.
  if (left < 4 && cache.in_flight.load(std::memory_order_relaxed) == 0) {
    const uint32_t made = cache.made.load(std::memory_order_relaxed);
    request_carriers(made < 16 ? 4 : made / 8 < 64 ? made / 8 : 64);
  }
  carrier->pool = w->pool;
  carrier->bubble = nullptr;
  return carrier;
}

void give_carriers_to_cache(Worker* w) {
  // The newest stay here (their stacks are warm); the oldest half goes back to everybody.
  Thread* keep = w->carriers;
  for (uint32_t i = 1; i < kCarrierStock; ++i) keep = keep->link;
  Thread* first = keep->link;
  keep->link = nullptr;
  Thread* last = first;
  uint32_t count = 1;
  for (; last->link != nullptr; last = last->link) ++count;
  w->carrier_count = kCarrierStock;
  cache.lock.lock();
  last->link = cache.free_list;
  cache.free_list = first;
  cache.lock.unlock();
  cache.available.fetch_add(count, std::memory_order_release);
  if (cache.starving.load(std::memory_order_relaxed) != 0) {
    cache.event.fetch_add(1, std::memory_order_release);
    base::futex_wake(&cache.event, INT32_MAX);
  }
}

void return_carrier(Thread* carrier) {
  cache.lock.lock();
  carrier->link = cache.free_list;
  cache.free_list = carrier;
  cache.lock.unlock();
  cache.available.fetch_add(1, std::memory_order_release);
}

Thread* take_all_carriers() {
  for (;;) {
    const uint32_t event = cache.event.load(std::memory_order_acquire);
    // acquire: the factory has put on the list what it made.
    if (cache.in_flight.load(std::memory_order_acquire) == 0) break;
    base::futex_wait(&cache.event, event);
  }
  base::SpinGuard guard(cache.lock);
  Thread* all = cache.free_list;
  cache.free_list = nullptr;
  cache.available.store(0, std::memory_order_relaxed);
  // The stock grows anew, as it did the first time.
  cache.made.store(0, std::memory_order_relaxed);
  cache.error.store(0, std::memory_order_relaxed);
  return all;
}

void carriers_forget_after_fork() {
  // Donors' kernel threads do not exist in the child; their memory is left alone (the forking thread
  // may stand on it).
  const size_t stack_size = cache.stack_size;
  new (&cache) Cache;
  cache.stack_size = stack_size;
}

context::Identity* take_identity(Worker* w) {
  Thread* carrier = take_carrier(w);
  return carrier == nullptr ? nullptr : carrier->own;
}

void wait_for_carrier(Worker* w) {
  Pool* pool = w->pool;
  const uint32_t event = cache.event.load(std::memory_order_acquire);
  if (cache.available.load(std::memory_order_acquire) != 0) return;
  if (w->unreported_groups != 0) report_arrivals(w);
  if (w->groups != nullptr) poll_groups(w);
  if (!w->ready.empty_hint()) return;
  const uint32_t starving = cache.starving.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (cache.in_flight.load(std::memory_order_relaxed) == 0) {
    const int error = cache.error.load(std::memory_order_relaxed);
    if (error != 0 && starving + pool->idle_count.load(std::memory_order_relaxed) +
                              pool->parked.load(std::memory_order_relaxed) >=
                          pool->worker_count.load(std::memory_order_relaxed))
      // Refused, and nobody runs who could free one: the members that wait can never go on.
      base::gomp_fatal("Thread creation failed: %s", strerror(error));
    request_carriers(4);
  }
  // The time-out only bounds how late something that became ready here is noticed.
  // A thousand who look every millisecond leave nothing for those who work.
  const timespec timeout{0, 1'000'000 * (1 + static_cast<long>(starving / 16))};
  if (cache.event.load(std::memory_order_acquire) == event)
    base::futex_wait(&cache.event, event, &timeout);
  cache.starving.fetch_sub(1, std::memory_order_acq_rel);
}

}  // namespace bosk::sched
