// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// System calls that a tick has cut short, and how they go on.
//
// Programs do not know of our signal, so no call of theirs may end by it. The kernel begins many calls again
// itself (SA_RESTART). Those that it never does (sleeps, polls, sigsuspend, time-outs of sockets: signal(7)) end
// with EINTR, and blocking writes with a part done; then the tick's handler, once the thread has found where it
// goes on, makes the call again with the time that is left, or finishes it (repeated_call.h). Arguments are still in
// their registers; the number is not. It is known
//
//   from the monitor, which looked before it sent the tick (CallNote), or
//   from the code before the call, which in libc's wrappers loads it (call_in_code.h).
//
// Without a number, EINTR it is: syscall(2), and in the microseconds only between a look and its tick.
#pragma once

#include <stdint.h>
#include <ucontext.h>

#include "context/call_note.h"
#include "sched/thread.h"

namespace bosk::sched {

struct InterruptedCall {
  enum class What : uint8_t {
    kNone,    ///< the thread was at work
    kAgain,   ///< the kernel begins the call again
    kEnded,   ///< it is about to return EINTR
    kPartly,  ///< it is about to return that a part is done
  };
  What what = What::kNone;
  bool repeated = false;  ///< it is one that continue_call() has made
  long number = -1;       ///< -1: unknown
  uint64_t since =
      0;  ///< at the latest, it has waited since then (CLOCK_MONOTONIC, ns); 0: unknown
  uint64_t waited = 0;  ///< ns from then until it was cut
  uint64_t asked = 0;   ///< of a sleep whose time is written over: ns; 0: unknown

  bool at_call() const { return what != What::kNone; }
  bool is_cut() const { return what == What::kEnded || what == What::kPartly; }
};

/// `note` is of the kernel thread that was interrupted.
InterruptedCall interrupted_call(const ucontext_t* interrupted, const context::CallNote& note);

/// The tick has come at the end of a sched_yield() that we do not get: there a thread that waits by it is nearly always. On x86-64 it
/// is told from the code, so syscall(2) of libc's is not recognised.
bool is_at_yield(const ucontext_t* interrupted);

/// The call goes on, and its result is put into the frame. Last in the handler, preemption on: signals of the
/// program's come in while it waits, as they would. `moved`: other threads ran meanwhile, or this is another
/// kernel thread.
void continue_call(const Thread* me, ucontext_t* interrupted, const InterruptedCall& call,
                   bool moved);

}  // namespace bosk::sched
