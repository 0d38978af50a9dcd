// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the preemption handler reads from an interrupted context, per architecture.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

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

// ---- system calls. Code is always readable where the program counter stands; the bytes before it are part of
// the same page or, up to the length of one instruction, of one before that was executed from.

/// The kernel is about to begin the call again.
inline bool is_before_call(const ucontext_t* interrupted) {
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
