// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the preemption handler reads from an interrupted context, per architecture.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "base/syscalls.h"

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

/// A digest of the general registers and the program counter.
inline uint64_t interrupted_state(const ucontext_t* interrupted) {
  uint64_t digest = interrupted_program_counter(interrupted);
  const auto add = [&digest](uint64_t value) {
    digest = (digest ^ value) * 0x9e37'79b9'7f4a'7c15u;
    digest ^= digest >> 29;
  };
#if defined(__x86_64__)
  for (int i = REG_R8; i <= REG_RSP; ++i)
    add(static_cast<uint64_t>(interrupted->uc_mcontext.gregs[i]));
#elif defined(__aarch64__)
  for (const uint64_t value : interrupted->uc_mcontext.regs) add(value);
  add(interrupted->uc_mcontext.sp);
#endif
  return digest;
}

/// True if the signal came while the thread was in a system call: about to be restarted (the program
/// counter stands on the instruction again) or about to return EINTR. Code is always readable where
/// the program counter stands; the two bytes before it are part of the same page or of one before that
/// was executed from.
inline bool interrupted_at_system_call(const ucontext_t* interrupted) {
#if defined(__x86_64__)
  const auto* code =
      reinterpret_cast<const unsigned char*>(interrupted->uc_mcontext.gregs[REG_RIP]);
  if (code[0] == 0x0f && code[1] == 0x05) return true;
  return interrupted->uc_mcontext.gregs[REG_RAX] == -EINTR && code[-2] == 0x0f && code[-1] == 0x05;
#elif defined(__aarch64__)
  constexpr uint32_t kSvc0 = 0xd4000001;
  const auto* code = reinterpret_cast<const uint32_t*>(interrupted->uc_mcontext.pc);
  if (code[0] == kSvc0) return true;
  return static_cast<int64_t>(interrupted->uc_mcontext.regs[0]) == -EINTR && code[-1] == kSvc0;
#endif
}

}  // namespace bosk::sched
