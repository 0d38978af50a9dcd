// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Native identities: what a kernel thread that the runtime meets, or makes, has of its own.
#include <errno.h>
#include <limits.h>
#include <linux/rseq.h>
#include <stddef.h>
#include <sys/resource.h>

#include <atomic>

#include "context/identity.h"
#include "context/setxid.h"
#include "context/switch.h"
#include "context/thread_errno.h"

extern "C" {
// glibc ≥ 2.35 says where it registered rseq; weak, because older ones do not register it at all.
[[gnu::weak]] extern const ptrdiff_t __rseq_offset;
[[gnu::weak]] extern const unsigned int __rseq_size;
}

namespace bosk::context {

constinit ptrdiff_t errno_distance = 0;

namespace {

/// In a thread's descriptor, whose address is its pthread_t, the C library keeps the number of its kernel thread: where, it tells nobody but
/// debuggers. So the first thread that is adopted looks for its own, and each later one has to find its own there.
constexpr size_t kTidSearched = 1024;
constexpr int kTidElsewhere = -1;
constinit std::atomic<int> tid_at{0};
constinit std::atomic<bool> tid_is_confirmed{false};

pid_t* tid_field(pthread_t thread, int at) {
  return reinterpret_cast<pid_t*>(thread + static_cast<uintptr_t>(at));
}

void find_tid_field(const Identity* mine) {
  int at = tid_at.load(std::memory_order_acquire);
  if (at == 0) {
    at = sizeof(pid_t);
    while (at < static_cast<int>(kTidSearched) && *tid_field(mine->pthread, at) != mine->tid)
      at += sizeof(pid_t);
    if (at >= static_cast<int>(kTidSearched)) at = kTidElsewhere;
    int none = 0;
    if (tid_at.compare_exchange_strong(none, at, std::memory_order_acq_rel)) return;
    at = none;
  }
  if (at == kTidElsewhere) return;
  const bool is_there = *tid_field(mine->pthread, at) == mine->tid;
  // relaxed: asked in a child, by the one thread there is.
  if (!is_there)
    tid_at.store(kTidElsewhere, std::memory_order_relaxed);
  else if (!tid_is_confirmed.load(std::memory_order_relaxed))
    tid_is_confirmed.store(true, std::memory_order_relaxed);
}

}  // namespace

void keep_stack_of(const Identity* owner) {
  const int at = tid_at.load(std::memory_order_relaxed);
  if (at <= 0 || !tid_is_confirmed.load(std::memory_order_relaxed)) return;
  pid_t* const field = tid_field(owner->pthread, at);
  if (__atomic_load_n(field, __ATOMIC_RELAXED) <= 0)
    __atomic_store_n(field, INT_MAX, __ATOMIC_RELAXED);
}

void adopt_calling_thread(Identity* identity) {
  find_errno();
  identity->kind = IdentityKind::kNative;
  identity->thread_pointer = thread_pointer();
  identity->block = thread_block();
  identity->block->identity = identity;
  identity->tid = base::thread_id();
  identity->pthread = pthread_self();
  find_tid_field(identity);
  register_kernel_thread(identity->tid, identity->thread_pointer);
}

void disown_calling_thread(Identity* identity) {
  forget_kernel_thread(identity->tid);
  identity->block->self = nullptr;
  // A tick that comes here sees nobody, or all of it.
  std::atomic_signal_fence(std::memory_order_release);
  identity->block->identity = nullptr;
}

/// Null: glibc has registered none.
static char* rseq_area(uintptr_t of) {
  if (&__rseq_offset == nullptr || &__rseq_size == nullptr || __rseq_size == 0) return nullptr;
  return reinterpret_cast<char*>(of) + __rseq_offset;
}

/// 0, or minus an errno value.
static long call_rseq(char* area, long flags) {
  // The signature that glibc registers with, per architecture.
#if defined(__x86_64__)
  constexpr long kSignature = 0x53053053;
#else
  constexpr long kSignature = static_cast<long>(0xd428bc00);
#endif
  return base::raw_syscall(SYS_rseq, reinterpret_cast<long>(area), 32, flags, kSignature);
}

void unregister_rseq() {
  char* area = rseq_area(thread_pointer());
  if (area == nullptr) return;
  call_rseq(area, RSEQ_FLAG_UNREGISTER);
  // glibc's sched_getcpu asks the kernel when the field says "registration failed".
  auto* cpu_id = reinterpret_cast<volatile int32_t*>(area + 4);
  *cpu_id = -2;
}

bool register_rseq() {
  char* area = rseq_area(thread_pointer());
  // EINVAL: it is registered with another area. EBUSY: with this one.
  return area == nullptr || call_rseq(area, 0) != -EINVAL;
}

bool unregister_rseq_of(uintptr_t thread_pointer) {
  char* area = rseq_area(thread_pointer);
  return area != nullptr && call_rseq(area, RSEQ_FLAG_UNREGISTER) == 0;
}

size_t default_stack_size() {
  rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return size_t{8} << 20;
  // What threads get that are made without a wish: the limit as it was when the process began, which the program
  // may have lowered since for its first thread's sake.
  pthread_attr_t attributes;
  size_t size = 0;
  if (pthread_getattr_default_np(&attributes) == 0) {
    pthread_attr_getstacksize(&attributes, &size);
    pthread_attr_destroy(&attributes);
  }
  return size != 0 ? size : static_cast<size_t>(limit.rlim_cur);
}

}  // namespace bosk::context
