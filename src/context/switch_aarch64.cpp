// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// First frame of a context on AArch64; mirrors the layout that switch_aarch64.S saves.
#include <stdint.h>

#include "context/switch.h"

namespace bosk::context {

void* make_context(void* stack_top, void (*entry)(void*), void* argument) {
  struct Frame {
    uint64_t x19_x28[10];
    uint64_t x29, x30;
    uint64_t d8_d15[8];
    uint64_t fpcr, fpsr;  // without flags
  };
  static_assert(sizeof(Frame) == 176);
  const uintptr_t top = (reinterpret_cast<uintptr_t>(stack_top) & ~uintptr_t{63}) - 64;
  auto* frame = reinterpret_cast<Frame*>(top - sizeof(Frame));
  *frame = Frame{};
  frame->x19_x28[0] = reinterpret_cast<uintptr_t>(argument);
  frame->x19_x28[1] = reinterpret_cast<uintptr_t>(entry);
  frame->x30 = reinterpret_cast<uintptr_t>(&bosk_context_entry);
  asm volatile("mrs %0, fpcr" : "=r"(frame->fpcr));
  return frame;
}

}  // namespace bosk::context
