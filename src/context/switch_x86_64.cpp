// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// First frame of a context on x86-64; mirrors the layout that switch_x86_64.S saves.
#include <stdint.h>

#include "context/switch.h"

namespace bosk::context {

extern "C" {
uint8_t bosk_x87_flags_matter = 0;
}

void* make_context(void* stack_top, void (*entry)(void*), void* argument) {
  struct Frame {
    uint32_t mxcsr;
    uint32_t x87;
    uintptr_t r15, r14, r13, r12, rbx, rbp, rip;
  };
  // bosk_context_entry starts with the stack pointer just above the frame; its call needs that to be
  // a multiple of 16. The two words above keep a fake return address of zero for naive unwinders.
  const uintptr_t top = (reinterpret_cast<uintptr_t>(stack_top) & ~uintptr_t{63}) - 64;
  auto* frame = reinterpret_cast<Frame*>(top - sizeof(Frame));
  static_assert(sizeof(Frame) == 64);
  *frame = Frame{};
  const FloatControl control = float_control();
  frame->mxcsr = control.mxcsr;
  frame->x87 = control.x87;
  frame->r12 = reinterpret_cast<uintptr_t>(argument);
  frame->r13 = reinterpret_cast<uintptr_t>(entry);
  frame->rip = reinterpret_cast<uintptr_t>(&bosk_context_entry);
  return frame;
}

void set_x87_state(FloatControl state) {
  // Cleared first: a flag that the new control word does not mask would be taken for a fault.
  asm volatile("fnclex\n\tfldcw %0" ::"m"(state.x87));
  if (state.x87_flags == 0) return;
  // Flags can only be set as part of the whole environment.
  struct {
    uint16_t control, unused0, status, unused1;
    uint32_t others[5];
  } environment;
  static_assert(sizeof environment == 28);
  asm volatile("fnstenv %0" : "=m"(environment));
  environment.control = state.x87;  // fnstenv has masked everything, behind what it stores
  environment.status |= state.x87_flags;
  asm volatile("fldenv %0" ::"m"(environment));
}

}  // namespace bosk::context
