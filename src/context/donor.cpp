// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Donors: POSIX threads that are created to lend their identity and their stack, and the factory
// kernel thread that makes them.
//
// Why a factory: pthread_create takes locks inside libc and inherits the creator's mask, affinity and
// FS. A worker asks while preemption is off, perhaps while a preempted user-level thread holds one of
// those locks; the factory is a plain kernel thread that can wait for it without stopping a worker.
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "base/message.h"
#include "base/spinlock.h"
#include "context/annotations.h"
#include "context/begin_here.h"
#include "context/identity.h"
#include "context/new_thread.h"
#include "context/park.h"
#include "context/park_stacks.h"
#include "context/setxid.h"
#include "context/switch.h"

namespace bosk::context {
namespace {

constexpr size_t kRecordBytes = 4096;

struct Factory {
  std::atomic<uint32_t> state{0};  ///< 0 none, 1 being made, 2 runs; to 0 under lock
  std::atomic<uint32_t> work{0};   ///< futex: number of requests ever queued
  base::SpinLock lock;             ///< guards head, tail
  DonorRequest* head = nullptr;
  DonorRequest* tail = nullptr;
  Identity* ended = nullptr;          ///< donors that were released, to be joined; guarded by lock
  std::atomic<uint32_t> stopping{0};  ///< futex; changes under lock
  pthread_t thread{};                 ///< while state is 2
  BeginHere::Masks masks;             ///< for its thread; by who makes it
  ParkStacks park_stacks;             ///< only the factory touches these
  size_t colour = 0;                  ///< of the last donor's stack
  size_t tls_bytes = 0;  ///< what glibc takes off the top of every stack: static TLS, control block
  bool setxid_is_wrapped = false;
  std::atomic<uint64_t> donors{0};
  std::atomic<uint64_t> threads{0};
};
constinit Factory factory;

struct DonorStart {
  DonorRequest* request;
  Identity* identity;
  char* park_stack;
  BeginHere::Masks masks{};
  std::atomic<uint32_t> ready{0};
};

void* donor_main(void* argument) {
  auto* start = static_cast<DonorStart*>(argument);
  Identity* identity = start->identity;
  DonorRequest* request = start->request;
  BeginHere::begin(start->masks);
  // Also glibc's for set*id, until it is on its park stack: from the moment that the identity is lent,
  // a signal's frame on this one would lie over the borrower's.
  base::set_signal_mask(~base::KernelSigset{0});
  unregister_rseq();
  identity->thread_pointer = thread_pointer();
  identity->block = thread_block();
  identity->block->identity = identity;
  identity->block->preempt_off = 1;
  identity->tid = base::thread_id();
  identity->pthread = pthread_self();
  identity->kind = IdentityKind::kDonor;
  register_kernel_thread(identity->tid, identity->thread_pointer);
  // The lent part starts well below this frame, which must survive until the donor ends.
  char* top = static_cast<char*>(__builtin_frame_address(0)) - 4096;
  request->initial_sp = make_context(top, request->entry, identity);
  void* park_sp = make_context(start->park_stack + ParkStacks::kBytes, park_loop, identity);
  release_to(identity);
  // `request` and `start` may be gone when it has stored to start->ready.
  lend_until_end(identity, park_sp, &start->ready);
  // `identity` is good until this thread has been joined. The destructors that run next are those of a
  // thread that the runtime does not know.
  acquire_from(identity);
  disown_calling_thread(identity);
  thread_block()->preempt_off = 0;
  return nullptr;
}

char* map_stack(size_t size, size_t guard) {
  void* low = mmap(nullptr, size + guard, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (low == MAP_FAILED) return nullptr;
  if (mprotect(low, guard, PROT_NONE) != 0) {
    munmap(low, size + guard);
    return nullptr;
  }
  return static_cast<char*>(low) + guard;
}

/// Threads of a team use the same few lines at the top of their stacks, in their TLS and in their
/// records in turn. At equal offsets in pages these would share one set of the first-level cache; so
/// every donor's stack ends elsewhere in its page. Neighbours are far apart, 63 take turns.
size_t next_colour() {
  constexpr size_t kColours = 63;
  constexpr size_t kStep = 23;
  factory.colour = (factory.colour + kStep) % kColours;
  return (factory.colour + 1) * base::kCacheLine;
}

/// The records end in the page after the one in which the stack ends.
size_t mapped_above(size_t size, size_t page) {
  return (size + page - 1) / page * page + kRecordBytes;
}

void serve_donor(DonorRequest* request) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t least = static_cast<size_t>(PTHREAD_STACK_MIN) + 64 * 1024;
  const size_t wanted = request->stack_size < least ? least : request->stack_size;
  // A size that would wrap around is one that cannot be had.
  const bool absurd = wanted > SIZE_MAX / 2;
  const size_t size =
      absurd ? 0 : (wanted + factory.tls_bytes + page - 1) / page * page + next_colour();
  request->error = ENOMEM;
  char* park = absurd ? nullptr : factory.park_stacks.take();
  // The records stand above the stack in the same mapping: nothing here goes through malloc, whose
  // locks a preempted thread may hold.
  char* stack = park == nullptr ? nullptr : map_stack(mapped_above(size, page), page);
  if (stack != nullptr) {
    auto* identity = new (stack + size) Identity;
    identity->park_slab = factory.park_stacks.slab();
    identity->records = stack + size + sizeof(Identity);
    identity->stack_low = stack;
    identity->stack_high = stack + size;
    DonorStart start{request, identity, park};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    // Our own memory: glibc neither caches nor reuses it, also not in a forked child.
    pthread_attr_setstack(&attributes, stack, size);
    pthread_t thread;
    int error;
    {
      const BeginHere here(BeginHere::kAlways);
      start.masks = here.masks();
      error = create_thread(&thread, &attributes, donor_main, &start);
    }
    pthread_attr_destroy(&attributes);
    if (error == 0) {
      // glibc installs its own handler with the first thread of a process, and only then.
      if (!factory.setxid_is_wrapped) factory.setxid_is_wrapped = install_setxid_wrapper();
      factory.donors.fetch_add(1, std::memory_order_relaxed);
      while (start.ready.load(std::memory_order_acquire) == 0) base::futex_wait(&start.ready, 0);
      acquire_from(identity);
      // The donor may still be on its way into its park loop; its first context is laid already, and
      // a command that comes early finds it.
      request->error = 0;
      request->finished(request, identity);
      return;
    }
    request->error = error;
    munmap(stack - page, page + mapped_above(size, page));
  }
  if (park != nullptr) factory.park_stacks.put_back();
  request->finished(request, nullptr);
}

struct ThreadStart {
  bool (*main)(void*);
  void* argument;
  base::KernelSigset mask;
  BeginHere::Masks masks;
};

void* thread_main(void* argument) {
  ThreadStart start = *static_cast<ThreadStart*>(argument);
  delete static_cast<ThreadStart*>(argument);
  BeginHere::begin(start.masks);
  base::set_signal_mask(start.mask);
  if (!start.main(start.argument)) pthread_detach(pthread_self());
  return nullptr;
}

void serve_thread(DonorRequest* request) {
  const BeginHere here;
  int error = ENOMEM;
  auto* start = new (std::nothrow)
      ThreadStart{request->thread_main, request->argument, request->mask, here.masks()};
  if (start != nullptr) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (request->stack_size != 0)
      pthread_attr_setstacksize(&attributes, request->stack_size + factory.tls_bytes);
    pthread_t thread;
    factory.threads.fetch_add(1, std::memory_order_relaxed);
    error = create_thread(&thread, &attributes, thread_main, start);
    pthread_attr_destroy(&attributes);
    // The new thread has told whoever asked: the request may be gone already.
    if (error == 0) return;
    factory.threads.fetch_sub(1, std::memory_order_relaxed);
    delete start;
  }
  request->error = error;
  request->finished(request, nullptr);
}

void join_ended(Identity* identity) {
  while (identity != nullptr) {
    Identity* next = identity->next;
    join_donor(identity);
    identity = next;
  }
}

/// glibc puts the static TLS of all objects onto the stack that a thread is given, however large it
/// is (threadprivate arrays), and refuses a stack that it fills. OMP_STACKSIZE means what is left.
[[gnu::noinline]] size_t measure_tls() {
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  const char* high = static_cast<char*>(low) + size;
  return static_cast<size_t>(high - static_cast<char*>(__builtin_frame_address(0)));
}

void* factory_main(void*) {
  BeginHere::begin(factory.masks);
  factory.tls_bytes = measure_tls();
  uint32_t seen = 0;
  for (;;) {
    const uint32_t now = factory.work.load(std::memory_order_acquire);
    if (now == seen) {
      base::futex_wait(&factory.work, seen);
      continue;
    }
    seen = now;
    for (;;) {
      factory.lock.lock();
      DonorRequest* request = factory.head;
      if (request != nullptr) {
        factory.head = request->next;
        if (factory.head == nullptr) factory.tail = nullptr;
      }
      Identity* ended = factory.ended;
      factory.ended = nullptr;
      const bool stop = request == nullptr && ended == nullptr &&
                        factory.stopping.load(std::memory_order_relaxed) != 0;
      if (stop) {
        factory.park_stacks.drop();
        // Who asks from now on starts another.
        factory.state.store(0, std::memory_order_release);
        factory.stopping.store(0, std::memory_order_release);
      }
      factory.lock.unlock();
      if (stop) {
        base::futex_wake(&factory.stopping, 1);
        return nullptr;
      }
      join_ended(ended);
      if (request == nullptr && ended == nullptr) break;
      if (request == nullptr) continue;
      if (request->thread_main == nullptr)
        serve_donor(request);
      else
        serve_thread(request);
    }
  }
}

int start_factory() {
  uint32_t expected = 0;
  if (factory.state.compare_exchange_strong(expected, 1, std::memory_order_acq_rel)) {
    // Every signal blocked: the factory must never run a program's handler. New threads set the mask
    // they need themselves.
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    // The default stack size: the only one that glibc makes large enough for the program's TLS.
    const int error = [] {
      const BeginHere here;
      factory.masks = here.masks();
      return create_thread(&factory.thread, nullptr, factory_main, nullptr);
    }();
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    factory.state.store(error == 0 ? 2 : 0, std::memory_order_release);
    base::futex_wake(&factory.state, INT_MAX);
    return error;
  }
  while (factory.state.load(std::memory_order_acquire) == 1) base::futex_wait(&factory.state, 1);
  return factory.state.load(std::memory_order_acquire) == 2 ? 0 : EAGAIN;
}

void wake_factory() {
  factory.work.fetch_add(1, std::memory_order_release);
  base::futex_wake(&factory.work, 1);
}

/// False: there is no factory any more.
bool enqueue(DonorRequest* request) {
  request->next = nullptr;
  factory.lock.lock();
  const bool runs = factory.state.load(std::memory_order_relaxed) == 2;
  if (runs) {
    if (factory.tail != nullptr)
      factory.tail->next = request;
    else
      factory.head = request;
    factory.tail = request;
  }
  factory.lock.unlock();
  if (runs) wake_factory();
  return runs;
}

}  // namespace

bool start_factory_early() {
  return factory.state.load(std::memory_order_acquire) == 2 || start_factory() == 0;
}

bool request_donor(DonorRequest* request) {
  do {
    if (factory.state.load(std::memory_order_acquire) != 2) {
      request->error = start_factory();
      if (request->error != 0) return false;
    }
  } while (!enqueue(request));
  return true;
}

void release_donor(Identity* identity) {
  factory.lock.lock();
  identity->next = factory.ended;
  factory.ended = identity;
  factory.lock.unlock();
  end_donor(identity);
  wake_factory();
}

void end_donor(Identity* identity) {
  release_to(identity);
  identity->command.give(Identity::kEnd);
}

void join_donor(Identity* identity) {
  pthread_join(identity->pthread, nullptr);
  ParkStacks::leave(identity->park_slab);
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto size = static_cast<size_t>(identity->stack_high - identity->stack_low);
  munmap(identity->stack_low - page, page + mapped_above(size, page));
}

bool stop_factory(pthread_t* thread) {
  if (factory.state.load(std::memory_order_acquire) != 2) return false;
  *thread = factory.thread;
  factory.lock.lock();
  factory.stopping.store(1, std::memory_order_relaxed);
  factory.lock.unlock();
  wake_factory();
  // Not the state, which may be another factory's soon.
  while (factory.stopping.load(std::memory_order_acquire) != 0)
    base::futex_wait(&factory.stopping, 1);
  return true;
}

void identity_forget_after_fork() {
  // The child has one kernel thread. The lock may have been held in the parent by another.
  new (&factory.lock) base::SpinLock;
  factory.head = factory.tail = nullptr;
  factory.ended = nullptr;
  factory.stopping.store(0, std::memory_order_relaxed);
  new (&factory.park_stacks) ParkStacks;  // it may have been in the middle of taking one
  factory.setxid_is_wrapped = false;
  factory.state.store(0, std::memory_order_relaxed);
}

IdentityCounts identity_counts() {
  return {factory.donors.load(std::memory_order_relaxed),
          factory.threads.load(std::memory_order_relaxed)};
}

}  // namespace bosk::context
