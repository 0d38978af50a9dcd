// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/loader.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/single_threaded.h>

#include <atomic>
#include <new>

#include "base/fork_order.h"
#include "base/sleeping_lock.h"
#include "base/syscalls.h"

namespace bosk::base {
namespace {

constinit SleepingLock loader_looks;

// The loader's lock has no name that others may use. It is the mutex in the loader's data that who calls dl_iterate_phdr() has while that
// calls back, and no longer afterwards: found so when the library is loaded, and from then on only read.
constinit const pthread_mutex_t* loader_lock = nullptr;

// Its other one, which who loads or unloads has all the time: so a child cannot see in what it has whether somebody was at it (the loader's lists,
// its map of ld.so.cache, which the next dlopen() unmaps, wherever that then is). The C library gives a child a new one. It stands before the
// first in the loader's data, in all versions. So whoever forks tries to take it: somebody who has it is told to the child, and nobody can take it
// until the child is there.
constinit pthread_mutex_t* load_lock = nullptr;
/// Written by handlers of a fork, which one thread at a time is in (loader_looks).
constinit bool has_load_lock = false;
constinit bool is_loading_elsewhere = false;

/// In a child: it was held when the process came into being, or what it guards was in the middle of a change. Written by the handler of a fork, when there is one thread.
constinit bool is_held_for_ever = false;

/// The mutexes in the loader's data that the calling thread has. Other threads may take and give back others meanwhile.
struct Held {
  static constexpr int kMost = 4;
  const pthread_mutex_t* mutexes[kMost];
  int count = 0;
};

bool is_ours(const pthread_mutex_t* mutex, int thread) {
  return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) != 0 &&
         __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) == thread &&
         mutex->__data.__kind == PTHREAD_MUTEX_RECURSIVE_NP;
}

/// Of the first object that has the loader's address.
int find_held(dl_phdr_info* info, size_t, void* argument) {
  if (info->dlpi_addr != getauxval(AT_BASE)) return 0;
  auto* held = static_cast<Held*>(argument);
  const int thread = thread_id();
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0) continue;
    constexpr uintptr_t kAlign = alignof(pthread_mutex_t);
    const uintptr_t end = info->dlpi_addr + header.p_vaddr + header.p_memsz;
    uintptr_t at = (info->dlpi_addr + header.p_vaddr + kAlign - 1) / kAlign * kAlign;
    for (; at + sizeof(pthread_mutex_t) <= end && held->count < Held::kMost; at += kAlign) {
      const auto* mutex = reinterpret_cast<const pthread_mutex_t*>(at);
      if (is_ours(mutex, thread)) held->mutexes[held->count++] = mutex;
    }
  }
  return 1;
}

/// Threads in open_library(), or in a library that opens others (hwloc its plug-ins, and these what they need): the loader's lists may be in the
/// middle of a change, and what they name mapped, but not relocated. Nobody enters while somebody forks (loader_looks, which the caller has), for a
/// child gets the process's pages one after the other: it would have the count from before, and the lists from after.
constinit std::atomic<uint32_t> opening{0};
constinit thread_local uint32_t opening_here = 0;

void begin_opening() {
  opening.fetch_add(1, std::memory_order_relaxed);
  ++opening_here;
}
void end_opening() {
  --opening_here;
  opening.fetch_sub(1, std::memory_order_release);
}

/// Also the program's own threads may be there: they map libraries, or unmap them.
bool is_inconsistent() { return _r_debug.r_state != r_debug::RT_CONSISTENT; }

void before_fork() {
  loader_looks.lock();
  has_load_lock = is_loading_elsewhere = false;
  if (load_lock == nullptr || __libc_single_threaded != 0) return;
  has_load_lock = pthread_mutex_trylock(load_lock) == 0;
  is_loading_elsewhere = !has_load_lock;
}
void in_parent() {
  if (has_load_lock) pthread_mutex_unlock(load_lock);
  loader_looks.unlock();
}
void in_child() {
  new (&loader_looks) SleepingLock;
  // Still the parent's: a C library that gives no new one.
  if (has_load_lock && __atomic_load_n(&load_lock->__data.__lock, __ATOMIC_RELAXED) != 0)
    *load_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  // relaxed, and so are the others: of those threads there is only this one.
  const uint32_t others = opening.load(std::memory_order_relaxed) - opening_here;
  opening.store(opening_here, std::memory_order_relaxed);
  if (others != 0 || is_loading_elsewhere || is_inconsistent() ||
      (loader_lock != nullptr &&
       __atomic_load_n(&loader_lock->__data.__lock, __ATOMIC_RELAXED) != 0))
    is_held_for_ever = true;
}

/// Where it cannot be told nothing is known, and a child may wait.
[[gnu::constructor(kForksOfLoader)]] void find_loader_lock() {
  Held held;
  dl_iterate_phdr(find_held, &held);
  // Also held after it: dlopen(), of this library, has it.
  const int thread = thread_id();
  const pthread_mutex_t* of_the_call = nullptr;
  int count = 0;
  for (int i = 0; i < held.count; ++i) {
    if (is_ours(held.mutexes[i], thread)) continue;
    of_the_call = held.mutexes[i];
    ++count;
  }
  if (count == 1) {
    loader_lock = of_the_call;
    auto* before = const_cast<pthread_mutex_t*>(of_the_call) - 1;
    if (before->__data.__kind == PTHREAD_MUTEX_RECURSIVE_NP && before->__data.__nusers <= 1)
      load_lock = before;
  }
  pthread_atfork(before_fork, in_parent, in_child);
}

}  // namespace

bool LibraryVisits::enter() {
  loader_looks.lock();
  const long process = raw_syscall(SYS_getpid);
  if (process_ != process) {
    // acquire: what who has left did in there.
    is_left_inside_ |= process_ != 0 && inside_.load(std::memory_order_acquire) != 0;
    inside_.store(0, std::memory_order_relaxed);
    process_ = process;
  }
  const bool may = !is_left_inside_;
  if (may) {
    inside_.fetch_add(1, std::memory_order_relaxed);
    begin_opening();
  }
  loader_looks.unlock();
  return may;
}

void LibraryVisits::leave() {
  end_opening();
  inside_.fetch_sub(1, std::memory_order_release);
}

LoaderLook::LoaderLook() { loader_looks.lock(); }
LoaderLook::~LoaderLook() { loader_looks.unlock(); }
bool LoaderLook::is_possible() { return !is_held_for_ever; }

void* open_library(const char* file, int flags, const char** why) {
  if (is_held_for_ever) {
    *why = "this process was forked while another thread loaded a library, so it can load none";
    return nullptr;
  }
  loader_looks.lock();
  begin_opening();
  loader_looks.unlock();
  void* handle = dlopen(file, flags);
  end_opening();
  if (handle == nullptr) *why = dlerror();
  if (handle == nullptr && *why == nullptr) *why = "cannot be opened";
  return handle;
}

}  // namespace bosk::base
