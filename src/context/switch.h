// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The context switch and the making of a first frame. One small assembly file per architecture.
#pragma once

#include <stdint.h>

namespace bosk::context {

/// The floating-point control state that a region's opener hands to its members.
struct FloatControl {
#if defined(__x86_64__)
  uint32_t mxcsr;
  uint16_t x87;
#else
  uint64_t fpcr;
#endif
};
static_assert(sizeof(FloatControl) == 8, "the switch returns it in a register");

/// Saves the caller's callee-saved registers and floating-point control state on its stack, stores
/// the stack pointer to `*save_sp`, installs `thread_pointer` (0: leave the identity as it is) and
/// continues where `to_sp` was saved. NOT saved: caller-saved registers, the signal mask, AVX or
/// SVE state (caller-saved in both ABIs), floating-point exception flags, shadow stacks.
/// Returns the control state that is in force when the caller goes on, its own, with whatever exception
/// flags there were: float_control_of().
extern "C" [[gnu::visibility("hidden")]] FloatControl bosk_context_switch(void** save_sp,
                                                                          void* to_sp,
                                                                          uintptr_t thread_pointer);

/// First code of a new context; only make_context() refers to it.
extern "C" [[gnu::visibility("hidden")]] void bosk_context_entry();

/// Lays a first frame below `stack_top` so that the first switch to the returned stack pointer calls
/// entry(argument), with this thread's floating-point control state. entry must not return.
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

/// Without the sticky exception flags: they are state of a computation, not a setting.
inline FloatControl float_control_of(FloatControl control) {
#if defined(__x86_64__)
  control.mxcsr &= ~0x3fu;
#endif
  return control;
}

/// That of the calling thread. On x86-64 some 10 ns, much of it for the x87 word.
inline FloatControl float_control() {
  FloatControl control;
#if defined(__x86_64__)
  asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(control.mxcsr), "=m"(control.x87));
  control = float_control_of(control);
#else
  asm volatile("mrs %0, fpcr" : "=r"(control.fpcr));
#endif
  return control;
}

inline void set_float_control(FloatControl control) {
#if defined(__x86_64__)
  asm volatile("ldmxcsr %0\n\tfldcw %1" ::"m"(control.mxcsr), "m"(control.x87));
#else
  asm volatile("msr fpcr, %0" ::"r"(control.fpcr));
#endif
}

inline bool same_float_control(FloatControl a, FloatControl b) {
#if defined(__x86_64__)
  return a.mxcsr == b.mxcsr && a.x87 == b.x87;
#else
  return a.fpcr == b.fpcr;
#endif
}

}  // namespace bosk::context
