// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which system call did the code make that ends here? On x86-64 the call has overwritten the register with its number; but libc's wrappers,
// as compilers do in general, load it by one of the last instructions before.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::sched {

/// `code` ends with a syscall instruction: the number that it loads before, if all in between are moves into other registers; -1: it is
/// not known. x86-64.
long number_of_call_in(const uint8_t* code, size_t bytes);

}  // namespace bosk::sched
