// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the sanitizers must be told about switches between identities. No code on hot paths unless one
// is on.
//
// AddressSanitizer and ThreadSanitizer find their per-thread state through TLS. A context under a
// donor's identity, on the donor's stack, is therefore simply that thread to them, whatever kernel
// thread runs it: stack bounds, fake stacks and call stacks are right without fiber calls. Three
// things remain, found by trying (docs/design/identity.md, "Sanitizers"):
//
// - One identity may be on several stacks, one after the other: AddressSanitizer must be told of each change. So it must
//   in the library that is shipped, when the program was built with it: hence weak references.
// - ThreadSanitizer cannot see that what happened before a switch happens before what follows it:
//   release_to() before the switch, acquire_from() after it, or annotated_switch() for all three.
// - Code that a donor's own kernel thread runs while its identity is lent away would use the same
//   per-thread state as the borrower, at the same time. The files with such code (park loop, handler
//   of signal 33) are therefore compiled without sanitizers, whatever the build's are.
//
// Under valgrind there are no such switches: it hides FSGSBASE, so that every thread gets a kernel
// thread (provider.cpp).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/sanitizers.h"
#include "context/identity.h"
#include "context/switch.h"

#if defined(BOSK_TSAN)
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif

namespace bosk::context {

/// ThreadSanitizer holds a signal back until the thread calls libc and then runs the handler there,
/// with the registers of before: nothing can be preempted so.
#if defined(BOSK_TSAN)
inline constexpr bool kPreemptible = false;
#else
inline constexpr bool kPreemptible = true;
#endif

/// Just before the switch, under the old identity: all that was done so far happens before what
/// follows acquire_from(token). `token` is any address that both sides know, such as the Identity of
/// the thread that is switched to. What follows until the switch is not covered: arguments of the
/// switch that others write must have been read before.
inline void release_to([[maybe_unused]] void* token) {
#if defined(BOSK_TSAN)
  __tsan_release(token);
#endif
}

/// Just after the switch, under the new identity.
inline void acquire_from([[maybe_unused]] void* token) {
#if defined(BOSK_TSAN)
  __tsan_acquire(token);
#endif
}

/// bosk_context_switch() with both. `to` is the token of whoever is switched to, `me` that of the
/// caller: what others give when they switch to it.
inline FloatControl annotated_switch(void** save_sp, void* to_sp, uintptr_t thread_pointer,
                                     void* to, void* me) {
  release_to(to);
  const FloatControl control = bosk_context_switch(save_sp, to_sp, thread_pointer);
  acquire_from(me);
  return control;
}

}  // namespace bosk::context
