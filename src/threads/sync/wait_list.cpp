// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that wait for their turn at one object.
#include "threads/sync/wait_list.h"

#include "base/syscalls.h"
#include "bosk/error.h"
#include "sched/address_wait.h"

namespace bosk::threads {

void WaitList::lock_contended(uint32_t generation) {
  for (int spins = 0;; ++spins) {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    // Held in another process than this one: nobody will unlock it.
    if (seen != generation &&
        word_.compare_exchange_strong(seen, generation, std::memory_order_acquire,
                                      std::memory_order_relaxed))
      return;
    base::cpu_pause();
    // The holder's kernel thread may have lost its CPU: let it run.
    if (spins % 256 == 255) base::raw_syscall(SYS_sched_yield);
  }
}

void let_go(Waiter* granted) {
  if (granted == nullptr) return;
  be_known();
  while (granted != nullptr) {
    Waiter* next = granted->next;
    std::atomic<uint32_t>* word = &granted->word;
    // release: what was done before goes with it. From here on the record may be gone.
    word->store(1, std::memory_order_release);
    sched::wake(*word, 1);
    granted = next;
  }
}

int wait_turn(WaitList& list, Waiter& me, uint64_t deadline, void (*is_off)(void*),
              void* argument) {
  be_known();
  while (me.word.load(std::memory_order_acquire) == 0) {
    const sched::WaitEnd end = sched::wait_on_until(me.word, 0, deadline);
    if (end == sched::WaitEnd::kWoken) continue;
    list.lock();
    if (me.granted) {
      // Whoever granted it is about to say so, and until then uses the record.
      list.unlock();
      deadline = kForever;
      continue;
    }
    list.remove(&me);
    if (is_off != nullptr) is_off(argument);
    list.unlock();
    return end == sched::WaitEnd::kTimedOut ? BOSK_ETIMEDOUT : BOSK_ENOMEM;
  }
  return 0;
}

}  // namespace bosk::threads
