// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A lock for what is made once for the process and may take long: forks wait for who makes it.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/cpu.h"
#include "base/syscalls.h"

namespace bosk::base {

/// What is half made a forked child can neither use nor, often, make again (libraries are opened on the way,
/// under the loader's lock). So the user registers before_fork(), in_parent() and in_child() with
/// pthread_atfork() before it takes the lock. It may be registered twice: a fork may find whoever registers just
/// before it could note that it has. And the handlers of a fork that is under way already do not come to run: so the
/// word names the process, and a holder in another process than this one holds nothing.
///
/// Who waits sleeps in the kernel. Preemption is on.
class MakerLock {
 public:
  void lock() {
    const uint32_t mine = static_cast<uint32_t>(raw_syscall(SYS_getpid)) << 1;
    uint32_t seen = 0;
    // acquire pairs with the release in unlock(): the holder sees what the last one wrote.
    if (BOSK_UNLIKELY(!word_.compare_exchange_strong(seen, mine, std::memory_order_acquire)))
      lock_contended(mine);
    // relaxed: looked at for its own number by the kernel thread that wrote it.
    owner_.store(thread_id(), std::memory_order_relaxed);
  }
  void unlock() {
    owner_.store(0, std::memory_order_relaxed);
    if ((word_.exchange(0, std::memory_order_release) & kContended) != 0) futex_wake(&word_, 1);
  }

  /// A plug-in may fork when it is opened: its maker does not wait for itself.
  void before_fork() {
    if (owner_.load(std::memory_order_relaxed) == thread_id())
      ++nested_;
    else
      lock();
  }
  void in_parent() {
    if (nested_ != 0)
      --nested_;
    else
      unlock();
  }
  void in_child() {
    // The maker, if it is the one that forked, goes on in the child, where nobody else is: it needs no lock.
    owner_.store(0, std::memory_order_relaxed);
    nested_ = 0;
    word_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kContended = 1;

  void lock_contended(uint32_t mine) {
    // Who comes here cannot know whether others sleep, too, and takes it as contended.
    for (uint32_t seen = word_.load(std::memory_order_relaxed);;) {
      if ((seen & ~kContended) != mine) {
        if (word_.compare_exchange_strong(seen, mine | kContended, std::memory_order_acquire))
          return;
        continue;
      }
      if (seen == mine &&
          !word_.compare_exchange_strong(seen, mine | kContended, std::memory_order_relaxed))
        continue;
      futex_wait(&word_, mine | kContended);
      seen = word_.load(std::memory_order_relaxed);
    }
  }

  std::atomic<uint32_t> word_{0};  ///< futex: the process of who holds it, and whether others wait
  std::atomic<int> owner_{0};      ///< the kernel thread that took it
  uint32_t nested_ = 0;            ///< forks by the holder that are under way; the holder's
};

}  // namespace bosk::base
