// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace bosk::libc {

/// Before a system call that acts on the calling kernel thread, or asks what was set: a member that shares kernel threads is on that of
/// its own identity when this returns. Not 0: what the call is to return, without being made.
long before_acting_call(long number);

}  // namespace bosk::libc
