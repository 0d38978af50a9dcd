// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Raw system calls: they touch neither errno nor any other TLS, so that the scheduler and signal
// handlers can use them whatever identity is installed.
#pragma once

#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>

namespace bosk::base {

/// The system call `number`; the result is the kernel's (negative errno on failure).
inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
#if defined(__x86_64__)
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
#else
#error "bosk knows x86-64 and AArch64"
#endif
}

inline long address_of(const void* pointer) { return reinterpret_cast<long>(pointer); }

/// Sleeps while `*word == expected`, at most `timeout` (relative; null: for ever). Returns the
/// kernel's answer: 0 woken, -EAGAIN value differed, -EINTR, -ETIMEDOUT.
inline long futex_wait(const std::atomic<uint32_t>* word, uint32_t expected,
                       const timespec* timeout = nullptr) {
  return raw_syscall(SYS_futex, address_of(word), FUTEX_WAIT_PRIVATE, static_cast<long>(expected),
                     address_of(timeout));
}

inline long futex_wake(const std::atomic<uint32_t>* word, int count) {
  return raw_syscall(SYS_futex, address_of(word), FUTEX_WAKE_PRIVATE, count);
}

/// The kernel's view of a signal set: one bit per signal, signal n is bit n-1.
using KernelSigset = uint64_t;

inline KernelSigset signal_bit(int signal_number) { return KernelSigset{1} << (signal_number - 1); }

inline void set_signal_mask(KernelSigset mask) {
  raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, address_of(&mask), 0, sizeof mask);
}

inline KernelSigset signal_mask() {
  KernelSigset mask = 0;
  raw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, address_of(&mask), sizeof mask);
  return mask;
}

/// How often the calling kernel thread has left its CPU, by itself or not. 0: the kernel does not tell, or never.
inline uint64_t times_off_cpu() {
  rusage usage{};
  if (raw_syscall(SYS_getrusage, RUSAGE_THREAD, address_of(&usage)) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_nvcsw) + static_cast<uint64_t>(usage.ru_nivcsw);
}

inline int thread_id() { return static_cast<int>(raw_syscall(SYS_gettid)); }

}  // namespace bosk::base
