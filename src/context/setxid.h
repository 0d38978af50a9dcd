// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keeps setuid() and its kin working while kernel threads run under identities that are not their own.
#pragma once

#include <stdint.h>

namespace bosk::context {

/// Says which identity the kernel thread `tid` was born with. Every kernel thread that ever installs
/// another's needs it: donors, workers, initial threads. False: no memory (the thread then hangs in
/// set*id while it runs under a lent identity). Takes no lock and does not use malloc.
bool register_kernel_thread(int tid, uintptr_t thread_pointer);

/// Must be called before the kernel thread ends: its number may be used again.
void forget_kernel_thread(int tid);

/// What timers that raise signal_of_ticks() call, with all signals blocked, the interrupted context and the timer's value. Ticks
/// share glibc's own signal: programs neither block it, nor wait for it, nor can they handle it, and debuggers
/// pass it on. They are told by their origin, a timer (nobody else's timers raise it).
void set_tick_handler(void (*handler)(void* interrupted, int value));
constexpr int signal_of_ticks() { return 33; }

/// Puts our handler around glibc's for set*id. Call it after the first donor was made, for glibc
/// installs its own inside the first pthread_create of the process (and of a forked child). May be
/// called again at any time; costs one system call where nothing is to do. False: glibc has no handler
/// yet, or the kernel refused.
bool install_setxid_wrapper();

/// After fork, in the child: all other kernel threads are gone. The caller must register again.
void setxid_forget_after_fork();

}  // namespace bosk::context
