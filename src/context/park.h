// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a donor's own kernel thread does while its identity is lent away.
#pragma once

#include <atomic>

#include "context/identity.h"

namespace bosk::context {

/// The park loop: entry of the context on the donor's park stack, `identity` is the donor's. Lets
/// glibc's signal for set*id in, sleeps until a command comes, and runs what it is told to.
void park_loop(void* identity);

/// Called by the donor's start frame, with all signals blocked: makes `park_sp` (a context in park_loop) the kernel thread's,
/// and then stores 1 to the futex `ready`. Returns when the donor is to end.
void lend_until_end(Identity* identity, void* park_sp, std::atomic<uint32_t>* ready);

}  // namespace bosk::context
