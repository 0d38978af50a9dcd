// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// System calls that a tick's handler makes in the program's place (interrupted_call.h).
#pragma once

#include <stdint.h>

namespace bosk::sched {

/// The arguments as they are in the frame.
struct CallArguments {
  long at[6];
  long operator[](int i) const { return at[i]; }
};

// What a tick gives as the result of such a call that was cut again: whoever made it makes it anew, since it
// alone knows which one it is. Numbers that the kernel does not let out.
constexpr long kCutAgain = -512;
constexpr long kCutAndMoved = -513;

/// The only system call of the handler's that may wait.
long call_by_number(long number, const CallArguments& a);

/// Has the call done a part of what it was to do, as it does only if it is interrupted (or fails)?
bool is_partial(long number, const CallArguments& a, long done);

/// Does the rest of what is_partial(); returns how much there is in the end. `ticks` counts those that meet the thread.
long finish_partial(long number, const CallArguments& a, long done, const volatile uint32_t& ticks);

}  // namespace bosk::sched
