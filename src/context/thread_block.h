// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The library's own thread-local block: what every identity carries in its TLS.
#pragma once

#include <stdint.h>

#include "base/sanitizers.h"

namespace bosk::sched {
struct Thread;
}  // namespace bosk::sched

namespace bosk::context {

struct Identity;

/// One per POSIX thread of the process, in static TLS, zero until the thread meets the runtime. It
/// belongs to the identity, not to the kernel thread: it travels with the FS base. Only the kernel
/// thread that has the identity installed touches it, except that `self` is written before a thread
/// of another stack runs under the identity for the first time.
struct ThreadBlock {
  sched::Thread* self;  ///< the thread that runs under this identity now
  int32_t preempt_off;  ///< > 0: the preemption handler must not switch here
  Identity* identity;
};

extern "C" {
[[gnu::visibility("hidden"),
  gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadBlock bosk_thread_block;
}

/// The block of the installed identity. Volatile: code that changes the identity within a function
/// (ghosts run under identities of their own) must not see a cached address.
inline ThreadBlock* thread_block() {
#if defined(__x86_64__)
  ThreadBlock* block;
  asm volatile(
      "movq bosk_thread_block@gottpoff(%%rip), %0\n\t"
      "addq %%fs:0, %0"
      : "=r"(block)
      :
      : "cc");
  return block;
#elif defined(__aarch64__)
  uintptr_t base;
  uintptr_t offset;
  asm volatile(
      "adrp %1, :gottprel:bosk_thread_block\n\t"
      "ldr %1, [%1, #:gottprel_lo12:bosk_thread_block]\n\t"
      "mrs %0, tpidr_el0"
      : "=r"(base), "=&r"(offset));
  return reinterpret_cast<ThreadBlock*>(base + offset);
#endif
}

inline sched::Thread* self() {
#if defined(__x86_64__)
  sched::Thread* result;
  static_assert(__builtin_offsetof(ThreadBlock, self) == 0);
  asm volatile(
      "movq bosk_thread_block@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(result));
  return result;
#else
  return thread_block()->self;
#endif
}

/// By its own thread. Others only ask whether it is 0 (sched/pause.cpp), which a plain instruction leaves whole; for ThreadSanitizer, which
/// cannot know, it is an atomic. A tick between the two leaves the number as it was.
inline void add_to_preempt_off(ThreadBlock* block, int32_t by) {
#if defined(BOSK_TSAN)
  __atomic_store_n(&block->preempt_off, block->preempt_off + by, __ATOMIC_RELAXED);
#else
  block->preempt_off = block->preempt_off + by;
#endif
}

/// Preemption off and on again, by one instruction each so that a tick sees either state whole.
/// Nested. While off, nothing in libc that can lock may be called.
inline void preempt_disable(ThreadBlock* block) {
  add_to_preempt_off(block, 1);
  asm volatile("" ::: "memory");
}
inline void preempt_enable(ThreadBlock* block) {
  asm volatile("" ::: "memory");
  add_to_preempt_off(block, -1);
}

/// The same for the installed identity, without a look at any record.
inline void preempt_disable() {
#if defined(__x86_64__)
  uintptr_t offset;
  asm volatile(
      "movq bosk_thread_block@gottpoff(%%rip), %0\n\t"
      "addl $1, %%fs:%c1(%0)"
      : "=&r"(offset)
      : "i"(__builtin_offsetof(ThreadBlock, preempt_off))
      : "memory", "cc");
#else
  preempt_disable(thread_block());
#endif
}
inline void preempt_enable() {
#if defined(__x86_64__)
  uintptr_t offset;
  asm volatile(
      "movq bosk_thread_block@gottpoff(%%rip), %0\n\t"
      "subl $1, %%fs:%c1(%0)"
      : "=&r"(offset)
      : "i"(__builtin_offsetof(ThreadBlock, preempt_off))
      : "memory", "cc");
#else
  preempt_enable(thread_block());
#endif
}

}  // namespace bosk::context
