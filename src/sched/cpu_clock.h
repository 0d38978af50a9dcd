// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The processor time of threads, for programs that ask for their own (CLOCK_THREAD_CPUTIME_ID, RUSAGE_THREAD). The kernel knows that of
// kernel threads, which run many of ours.
//
// A thread that has asked is noted (kAsksCpuTime), and from then on its time is the kernel thread's plus `base`, which is set anew at
// each switch to it:
//
//     value                  ______/       kernel thread A runs it, then somebody else, and then B does
//                     ______/      |
//     ______/........|             |
//     A      (others)  B
//
// Others pay nothing. What ghosts use that it runs on its own stack is taken out again (exclude_cpu_time()).
//
// Written by who runs the thread, or switches to or from it.
#pragma once

#include <stdint.h>

#include "sched/thread.h"

namespace bosk::sched {

struct Worker;

/// From now on initial threads are noted from their begin: what they asked before their first region was answered by libc.
void expect_questions_for_cpu_time();
/// An initial thread has been made, on its own kernel thread.
void begin_cpu_time(Thread* me);

/// Of the calling thread, in ns; any begin, but it goes on. From the first question on. False: this is another kernel thread than its own, the child
/// of a vfork().
bool ask_cpu_time(Thread* me, uint64_t* ns);
inline bool asks_cpu_time(const Thread* me) { return (me->notes & kAsksCpuTime) != 0; }
/// For a thread that asks: from begin_excluding() to exclude() what it runs on its stack is others'.
uint64_t begin_excluding(Thread* me);
void exclude(Thread* me, uint64_t since);
/// It is to run other members.
void forget_cpu_time(Thread* carrier);

/// For note_switch(), by the kernel thread that runs `from`.
void switch_cpu_time(const Worker* w, Thread* from, Thread* to);
/// It leaves the kernel thread that is the caller's; goes on on `kernel`, where it is not on one already.
void leave_cpu_time(Thread* thread);
void resume_cpu_time(Thread* thread, const context::Identity* kernel);

/// In the child of a fork, whose kernel thread is new.
void cpu_time_forget_after_fork();

}  // namespace bosk::sched
