// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waiting for file descriptors: a kernel thread in epoll_wait(2), the poller, wakes whoever registered.
//
// Who waits has one record a descriptor in a hash table, and a word of its own that says "look again". The
// poller does not judge: an event sets the word and takes the record out; the waiter asks poll(2), and
// registers again if it was a false alarm. So an event of a file that has long been closed, or of a number
// that has been used again, costs a look. Registrations are one-shot and level-triggered: what was ready
// before the registration is reported at once, and a descriptor that nobody waits for makes no events. It
// stays known to the kernel until it is closed, for the next wait on it.
//
// A bucket's lock guards its records and orders the epoll_ctl(2) calls for its descriptors: the kernel's
// interest is always that of all records together. The word is written under the lock, and its owner takes
// it again before it goes away.
#include "sched/fd_wait.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <new>

#include "base/spinlock.h"
#include "sched/address_wait.h"
#include "sched/clock.h"
#include "sched/kernel_threads.h"
#include "sched/pause.h"
#include "sched/scheduler.h"
#include "sched/service_thread.h"

namespace bosk::sched {
namespace {

struct FdWaiter {
  int fd = -1;
  uint32_t events = 0;
  std::atomic<uint32_t>* word = nullptr;  ///< 1: something may have happened
  FdWaiter* next = nullptr;
  bool listed = false;
};

constexpr uint32_t kBuckets = 256;

struct alignas(base::kCacheLine) FdBucket {
  base::SpinLock lock;
  FdWaiter* first = nullptr;
};

struct Poller {
  int epoll = -1;  ///< written before the thread runs
  int kick = -1;   ///< an eventfd that ends the thread's sleep
  /// In poll_until(). relaxed: who asks, a pause, has passed a heavy barrier after all left the scheduler.
  std::atomic<uint32_t> waiting{0};
  FdBucket buckets[kBuckets];
  ServiceThread thread;
};
constinit Poller poller;

FdBucket& bucket_of(int fd) { return poller.buckets[static_cast<uint32_t>(fd) % kBuckets]; }

/// The kernel's interest in `fd` is what the bucket's records say. 0 or a negative errno value.
long tell_kernel(const FdBucket& bucket, int fd) {
  epoll_event event{};
  event.data.fd = fd;
  for (const FdWaiter* w = bucket.first; w != nullptr; w = w->next)
    if (w->fd == fd) event.events |= w->events;
  event.events |= EPOLLONESHOT;
  const long argument = base::address_of(&event);
  const long changed = base::raw_syscall(SYS_epoll_ctl, poller.epoll, EPOLL_CTL_MOD, fd, argument);
  // Not known yet, or closed since and another file now.
  if (changed != -ENOENT) return changed;
  return base::raw_syscall(SYS_epoll_ctl, poller.epoll, EPOLL_CTL_ADD, fd, argument);
}

long enlist(FdWaiter* waiter) {
  FdBucket& bucket = bucket_of(waiter->fd);
  base::SpinGuard guard(bucket.lock);
  waiter->next = bucket.first;
  bucket.first = waiter;
  waiter->listed = true;
  const long error = tell_kernel(bucket, waiter->fd);
  // Such files (ordinary ones) are always ready, or never for what is asked here.
  return error == -EPERM ? 0 : error;
}

void delist(FdWaiter* waiter) {
  FdBucket& bucket = bucket_of(waiter->fd);
  base::SpinGuard guard(bucket.lock);
  if (!waiter->listed) return;
  FdWaiter** at = &bucket.first;
  while (*at != waiter) at = &(*at)->next;
  *at = waiter->next;
}

/// Takes out all records of `fd` that ask for one of `events`.
void dispatch(int fd, uint32_t events) {
  FdBucket& bucket = bucket_of(fd);
  base::SpinGuard guard(bucket.lock);
  bool others = false;
  for (FdWaiter** at = &bucket.first; *at != nullptr;) {
    FdWaiter* waiter = *at;
    const bool mine = waiter->fd == fd;
    if (mine && (events & (waiter->events | EPOLLERR | EPOLLHUP)) != 0) {
      *at = waiter->next;
      waiter->listed = false;
      // release: nothing hangs on it, the waiter asks the kernel; but it pairs with the wait's load.
      waiter->word->store(1, std::memory_order_release);
      wake_from_service(*waiter->word);
      continue;
    }
    others = others || mine;
    at = &waiter->next;
  }
  // The event has used up the registration. An error is told to the waiters that are left at their next look:
  // the descriptor has been closed.
  if (others) tell_kernel(bucket, fd);
}

/// The program has closed our descriptor: all look again, with a new one.
void start_over() {
  const long made = base::raw_syscall(SYS_epoll_create1, EPOLL_CLOEXEC);
  if (made < 0) {
    const timespec pause{0, 10'000'000};
    base::raw_syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, base::address_of(&pause), 0);
    return;
  }
  for (FdBucket& bucket : poller.buckets) bucket.lock.lock();
  poller.epoll = static_cast<int>(made);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = -1;
  base::raw_syscall(SYS_epoll_ctl, poller.epoll, EPOLL_CTL_ADD, poller.kick,
                    base::address_of(&event));
  for (FdBucket& bucket : poller.buckets) {
    while (FdWaiter* waiter = bucket.first) {
      bucket.first = waiter->next;
      waiter->listed = false;
      waiter->word->store(1, std::memory_order_release);
      wake_from_service(*waiter->word);
    }
    bucket.lock.unlock();
  }
}

void run_poller(ServiceThread& service) {
  constexpr int kEvents = 64;
  epoll_event events[kEvents];
  while (!service.is_stopping()) {
    const long found = base::raw_syscall(SYS_epoll_pwait, poller.epoll, base::address_of(events),
                                         kEvents, -1, 0, sizeof(base::KernelSigset));
    if (found == -EBADF || found == -EINVAL) start_over();
    for (long i = 0; i < found; ++i)
      if (events[i].data.fd >= 0) dispatch(events[i].data.fd, events[i].events);
  }
}

void close_descriptors() {
  ::close(poller.epoll);
  ::close(poller.kick);
  poller.epoll = poller.kick = -1;
}

int open_descriptors() {
  poller.epoll = epoll_create1(EPOLL_CLOEXEC);
  if (poller.epoll < 0) return errno;
  poller.kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = -1;
  if (poller.kick >= 0 && epoll_ctl(poller.epoll, EPOLL_CTL_ADD, poller.kick, &event) == 0)
    return 0;
  const int error = errno;
  if (poller.kick >= 0) ::close(poller.kick);
  ::close(poller.epoll);
  poller.epoll = poller.kick = -1;
  return error;
}

void kick_poller() {
  const uint64_t one = 1;
  base::raw_syscall(SYS_write, poller.kick, base::address_of(&one), sizeof one);
}

/// poll(2) that does not wait. Negative: an errno value.
int look(pollfd* fds, uint32_t count) {
  const timespec none{0, 0};
  long ready;
  do {
    ready = base::raw_syscall(SYS_ppoll, base::address_of(fds), count, base::address_of(&none), 0,
                              sizeof(base::KernelSigset));
  } while (ready == -EINTR);
  return static_cast<int>(ready);
}

int poll_in_kernel(pollfd* fds, uint32_t count, uint64_t deadline) {
  for (;;) {
    timespec left{0, 0};
    if (deadline != kForever) time_left(deadline, &left);
    const long ready = base::raw_syscall(SYS_ppoll, base::address_of(fds), count,
                                         base::address_of(deadline != kForever ? &left : nullptr),
                                         0, sizeof(base::KernelSigset));
    if (ready != -EINTR) return static_cast<int>(ready);
  }
}

/// Registers all. 0 or a negative errno value; the caller delists them in either case.
long enlist_all(FdWaiter* waiters, const pollfd* fds, uint32_t count, std::atomic<uint32_t>* word) {
  for (uint32_t i = 0; i < count; ++i) {
    if (fds[i].fd < 0) continue;
    waiters[i].fd = fds[i].fd;
    waiters[i].events = static_cast<uint16_t>(fds[i].events);
    waiters[i].word = word;
    waiters[i].next = nullptr;
    if (const long error = enlist(&waiters[i]); error != 0) return error;
  }
  return 0;
}

/// poll_until() of a thread that has looked once in vain.
int wait_for_events(Thread* me, FdWaiter* waiters, pollfd* fds, uint32_t count, uint64_t deadline) {
  for (;;) {
    for (;;) {
      if (const int error = poller.thread.ensure(me, open_descriptors, run_poller)) return -error;
      enter(me);
      if (BOSK_LIKELY(!pause_is_on() && poller.thread.runs())) break;
      leave(me);
      wait_out_pause();
    }
    poller.waiting.fetch_add(1, std::memory_order_relaxed);
    std::atomic<uint32_t> word{0};
    const long error = enlist_all(waiters, fds, count, &word);
    leave(me);
    WaitEnd end = WaitEnd::kWoken;
    // The word says "once": after a spurious return the look below tells.
    if (error == 0) end = wait_on_until(word, 0, deadline);
    enter(me);
    for (uint32_t i = 0; i < count; ++i)
      if (waiters[i].fd >= 0) delist(&waiters[i]);
    poller.waiting.fetch_sub(1, std::memory_order_relaxed);
    leave(me);
    if (error != 0) return static_cast<int>(error);
    if (end == WaitEnd::kNoClock) return -EAGAIN;
    const int ready = look(fds, count);
    if (ready != 0 || end == WaitEnd::kTimedOut) return ready;
    for (uint32_t i = 0; i < count; ++i) waiters[i] = FdWaiter{};
  }
}

}  // namespace

int poll_until(pollfd* fds, uint32_t count, uint64_t deadline) {
  const int ready = look(fds, count);
  if (ready != 0) return ready;
  if (deadline != kForever && clock_now() >= deadline) {
    give_way();
    return look(fds, count);
  }
  Thread* me = context::self();
  if (me == nullptr) me = attach_calling_thread();
  if (BOSK_UNLIKELY(!can_multiplex(me->pool))) return poll_in_kernel(fds, count, deadline);
  constexpr uint32_t kFew = 8;
  if (count <= kFew) {
    FdWaiter waiters[kFew];
    return wait_for_events(me, waiters, fds, count, deadline);
  }
  auto* waiters = static_cast<FdWaiter*>(malloc(count * sizeof(FdWaiter)));
  if (waiters == nullptr) return -ENOMEM;
  for (uint32_t i = 0; i < count; ++i) new (&waiters[i]) FdWaiter;
  const int result = wait_for_events(me, waiters, fds, count, deadline);
  free(waiters);
  return result;
}

bool poller_is_needed() { return poller.waiting.load(std::memory_order_relaxed) != 0; }

void stop_poller() {
  if (poller.thread.stop(kick_poller)) close_descriptors();
}

void poller_forget_after_fork() {
  // The descriptors are copies: closing them here changes nothing in the parent.
  if (poller.thread.forget_after_fork() && poller.epoll >= 0) close_descriptors();
  poller.epoll = poller.kick = -1;
  poller.waiting.store(0, std::memory_order_relaxed);
  for (FdBucket& bucket : poller.buckets) {
    new (&bucket.lock) base::SpinLock;
    bucket.first = nullptr;
  }
}

}  // namespace bosk::sched
