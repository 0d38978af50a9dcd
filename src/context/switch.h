// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The context switch and the making of a first frame. One small assembly file per architecture.
#pragma once

#include <stdint.h>

#include "base/cpu.h"

namespace bosk::context {

/// A thread's floating-point environment: the control state, which a region's opener hands to its members, and the
/// exception flags that computations leave behind.
struct FloatControl {
#if defined(__x86_64__)
  uint32_t mxcsr;  ///< its low six bits are flags
  uint16_t x87;
  uint16_t x87_flags;
#else
  uint32_t fpcr;
  uint32_t fpsr;
#endif
};
static_assert(sizeof(FloatControl) == 8, "the switch returns it in a register");

/// Saves the caller's callee-saved registers and floating-point environment on its stack, stores
/// the stack pointer to `*save_sp`, installs `thread_pointer` (0: leave the identity as it is) and
/// continues where `to_sp` was saved. NOT saved: caller-saved registers, the signal mask, AVX or
/// SVE state (caller-saved in both ABIs), shadow stacks.
/// Returns the environment that is in force when the caller goes on: its own.
extern "C" [[gnu::visibility("hidden")]] FloatControl bosk_context_switch(void** save_sp,
                                                                          void* to_sp,
                                                                          uintptr_t thread_pointer);

/// First code of a new context; only make_context() refers to it.
extern "C" [[gnu::visibility("hidden")]] void bosk_context_entry();

/// Lays a first frame below `stack_top` so that the first switch to the returned stack pointer calls
/// entry(argument), with this thread's floating-point control state and no exception flags. entry must not return.
void* make_context(void* stack_top, void (*entry)(void*), void* argument);

/// Installs `thread_pointer` as the identity of this kernel thread (x86-64: FS base, AArch64:
/// TPIDR_EL0), and reads it.
inline void set_thread_pointer(uintptr_t thread_pointer) {
#if defined(__x86_64__)
  asm volatile("wrfsbase %0" ::"r"(thread_pointer) : "memory");
#elif defined(__aarch64__)
  asm volatile("msr tpidr_el0, %0" ::"r"(thread_pointer) : "memory");
#endif
}

inline uintptr_t thread_pointer() {
  uintptr_t value;
#if defined(__x86_64__)
  asm volatile("movq %%fs:0, %0" : "=r"(value));
#elif defined(__aarch64__)
  asm volatile("mrs %0, tpidr_el0" : "=r"(value));
#endif
  return value;
}

/// The exception flags of what is computed with SSE; x87 has its own.
constexpr uint32_t kMxcsrFlags = 0x3f;

/// Without the exception flags: they are state of a computation, not a setting.
inline FloatControl float_control_of(FloatControl state) {
#if defined(__x86_64__)
  state.mxcsr &= ~kMxcsrFlags;
  state.x87_flags = 0;
#else
  state.fpsr = 0;
#endif
  return state;
}

#if defined(__x86_64__)
/// Somebody could see x87's flags, which are those of `long double`: fenv.h's functions are imported. Reading them
/// costs as much as all else here (5 ns), at every switch and ghost, so that nobody else pays for it; until then they
/// count as clear. Only ever rises.
extern "C" {
[[gnu::visibility("hidden")]] extern uint8_t bosk_x87_flags_matter;
}
#endif

/// That of the calling thread, flags included. On x86-64 some 5 ns.
inline FloatControl float_state() {
  FloatControl state;
#if defined(__x86_64__)
  asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(state.mxcsr), "=m"(state.x87));
  state.x87_flags = 0;
  if (BOSK_UNLIKELY(__atomic_load_n(&bosk_x87_flags_matter, __ATOMIC_RELAXED) != 0)) {
    asm volatile("fnstsw %0" : "=a"(state.x87_flags));
    state.x87_flags &= kMxcsrFlags;  // the same six, in the same order
  }
#else
  uint64_t fpcr;
  uint64_t fpsr;
  asm volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(fpcr), "=r"(fpsr));
  state = {static_cast<uint32_t>(fpcr), static_cast<uint32_t>(fpsr)};
#endif
  return state;
}

/// The control state of the calling thread, without flags.
inline FloatControl float_control() { return float_control_of(float_state()); }

inline bool same_float_state(FloatControl a, FloatControl b) {
#if defined(__x86_64__)
  return a.mxcsr == b.mxcsr && a.x87 == b.x87 && a.x87_flags == b.x87_flags;
#else
  return a.fpcr == b.fpcr && a.fpsr == b.fpsr;
#endif
}

inline bool same_float_control(FloatControl a, FloatControl b) {
  return same_float_state(float_control_of(a), float_control_of(b));
}

#if defined(__x86_64__)
/// The x87 part of set_float_state().
[[gnu::cold]] void set_x87_state(FloatControl state);
#endif

/// Installs all of it, flags included. `now`: what is in force; only what differs is written.
inline void set_float_state(FloatControl state, FloatControl now) {
#if defined(__x86_64__)
  if (state.mxcsr != now.mxcsr) asm volatile("ldmxcsr %0" ::"m"(state.mxcsr));
  if (state.x87 != now.x87 || state.x87_flags != now.x87_flags) set_x87_state(state);
#else
  const uint64_t fpcr = state.fpcr;
  const uint64_t fpsr = state.fpsr;
  if (fpcr != now.fpcr) asm volatile("msr fpcr, %0" ::"r"(fpcr));
  if (fpsr != now.fpsr) asm volatile("msr fpsr, %0" ::"r"(fpsr));
#endif
}

/// Installs the control state; what flags there are stay.
inline void set_float_control(FloatControl control) {
  const FloatControl state = float_state();
#if defined(__x86_64__)
  control.mxcsr = (control.mxcsr & ~kMxcsrFlags) | (state.mxcsr & kMxcsrFlags);
  control.x87_flags = state.x87_flags;
#else
  control.fpsr = state.fpsr;
#endif
  set_float_state(control, state);
}

}  // namespace bosk::context
