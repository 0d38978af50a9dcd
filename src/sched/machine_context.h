// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the preemption handler reads from an interrupted context, per architecture.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include <atomic>

#include "base/cpu.h"
#include "base/syscalls.h"
#include "sched/call_in_code.h"

namespace bosk::sched {

using KernelMask = base::KernelSigset;

inline KernelMask interrupted_mask(const ucontext_t* interrupted) {
  KernelMask mask;
  memcpy(&mask, &interrupted->uc_sigmask, sizeof mask);
  return mask;
}

inline uintptr_t interrupted_program_counter(const ucontext_t* interrupted) {
#if defined(__x86_64__)
  return static_cast<uintptr_t>(interrupted->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<uintptr_t>(interrupted->uc_mcontext.pc);
#endif
}

inline uintptr_t interrupted_stack_pointer(const ucontext_t* interrupted) {
#if defined(__x86_64__)
  return static_cast<uintptr_t>(interrupted->uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return static_cast<uintptr_t>(interrupted->uc_mcontext.sp);
#endif
}

inline void add_to_digest(uint64_t* digest, uint64_t value) {
  *digest = (*digest ^ value) * 0x9e37'79b9'7f4a'7c15u;
  *digest ^= *digest >> 29;
}

/// A digest of the general registers, the program counter not among them: a loop of several instructions that polls has the
/// same values in all of them.
inline uint64_t interrupted_state(const ucontext_t* interrupted) {
  uint64_t digest = 0;
  const auto add = [&digest](uint64_t value) { add_to_digest(&digest, value); };
#if defined(__x86_64__)
  for (int i = REG_R8; i <= REG_RSP; ++i)
    add(static_cast<uint64_t>(interrupted->uc_mcontext.gregs[i]));
#elif defined(__aarch64__)
  for (const uint64_t value : interrupted->uc_mcontext.regs) add(value);
  add(interrupted->uc_mcontext.sp);
#endif
  return digest;
}

// ---- system calls. Code need not be readable where the program counter stands, and before it there may be nothing at all, as before code
// that a program has made for itself.

/// As the kernel has it, which copies a mask first, and then knows no such way to set one.
inline bool is_readable(uintptr_t address) {
  constexpr long kNoWay = -1;
  constexpr long kMaskBytes = 8;
  return base::raw_syscall(SYS_rt_sigprocmask, kNoWay,
                           static_cast<long>(address & ~uintptr_t{kMaskBytes - 1}), 0,
                           kMaskBytes) != -EFAULT;
}

/// From the instruction before `pc`, if that is as long as one of a system call, to the one there. A call of the kernel where another page was
/// asked for last, or two.
inline bool is_readable_code(uintptr_t pc) {
  constexpr uintptr_t kPage = 4096;
  constexpr uintptr_t kLongest = 4;
  static constinit std::atomic<uintptr_t> last_page{0};
  if (BOSK_UNLIKELY(pc % kPage < kLongest) && !is_readable(pc - kLongest)) return false;
  // relaxed: the number is all there is. A page that was readable once stays so, unless a program makes other code there.
  if (BOSK_LIKELY(last_page.load(std::memory_order_relaxed) == pc / kPage)) return true;
  if (!is_readable(pc)) return false;
  last_page.store(pc / kPage, std::memory_order_relaxed);
  return true;
}

/// The kernel is about to begin the call again.
inline bool is_before_call(const ucontext_t* interrupted) {
  if (BOSK_UNLIKELY(!is_readable_code(interrupted_program_counter(interrupted)))) return false;
#if defined(__x86_64__)
  const auto* code =
      reinterpret_cast<const unsigned char*>(interrupted->uc_mcontext.gregs[REG_RIP]);
  return code[0] == 0x0f && code[1] == 0x05;
#elif defined(__aarch64__)
  return *reinterpret_cast<const uint32_t*>(interrupted->uc_mcontext.pc) == 0xd4000001;
#endif
}

/// A call has just returned.
inline bool is_after_call(const ucontext_t* interrupted) {
  if (BOSK_UNLIKELY(!is_readable_code(interrupted_program_counter(interrupted)))) return false;
#if defined(__x86_64__)
  const auto* code =
      reinterpret_cast<const unsigned char*>(interrupted->uc_mcontext.gregs[REG_RIP]);
  return code[-2] == 0x0f && code[-1] == 0x05;
#elif defined(__aarch64__)
  return reinterpret_cast<const uint32_t*>(interrupted->uc_mcontext.pc)[-1] == 0xd4000001;
#endif
}

/// Where is_before_call().
inline long number_before_call(const ucontext_t* interrupted) {
#if defined(__x86_64__)
  return interrupted->uc_mcontext.gregs[REG_RAX];
#elif defined(__aarch64__)
  return static_cast<long>(interrupted->uc_mcontext.regs[8]);
#endif
}

/// Where is_after_call(): the number that the code shows; -1: none.
inline long number_in_code([[maybe_unused]] const ucontext_t* interrupted) {
#if defined(__x86_64__)
  constexpr uintptr_t kPage = 4096;
  constexpr uintptr_t kEnough = 64;
  const auto pc = static_cast<uintptr_t>(interrupted->uc_mcontext.gregs[REG_RIP]);
  // The page before may not be there.
  const uintptr_t bytes = pc % kPage < kEnough ? pc % kPage : kEnough;
  return number_of_call_in(reinterpret_cast<const uint8_t*>(pc - bytes), bytes);
#else
  // The number is still there, but the result stands where the first argument was.
  return -1;
#endif
}

inline long call_result(const ucontext_t* interrupted) {
#if defined(__x86_64__)
  return interrupted->uc_mcontext.gregs[REG_RAX];
#elif defined(__aarch64__)
  return static_cast<long>(interrupted->uc_mcontext.regs[0]);
#endif
}

inline void set_call_result(ucontext_t* interrupted, long result) {
#if defined(__x86_64__)
  interrupted->uc_mcontext.gregs[REG_RAX] = result;
#elif defined(__aarch64__)
  interrupted->uc_mcontext.regs[0] = static_cast<uint64_t>(result);
#endif
}

/// Argument 0 … 5 of a call that has returned. (On AArch64 the first is lost: its register has the result.)
inline long call_argument(const ucontext_t* interrupted, int at) {
#if defined(__x86_64__)
  constexpr int kRegisters[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
  return interrupted->uc_mcontext.gregs[kRegisters[at]];
#elif defined(__aarch64__)
  return static_cast<long>(interrupted->uc_mcontext.regs[at]);
#endif
}

}  // namespace bosk::sched
