// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the layers above tell the scheduler, once, before its first thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::topology {
struct Machine;
}

namespace bosk::sched {

struct Bubble;
struct NativeJob;
struct Thread;
struct Worker;

struct Configuration {
  uint32_t worker_limit = 1;        ///< workers per pool
  bool limit_follows_cpus = false;  ///< a pool whose thread may use fewer or more CPUs has as many
  size_t stack_size = 0;            ///< bytes, of every stack the runtime makes
  uint64_t spin_cycles =
      0;  ///< an idle worker polls so long before it sleeps, if workers do not outnumber CPUs
  /// Not 0: the program asked for waiting without polling. Wake-ups that follow each other in less than
  /// this are worth polling for all the same.
  uint64_t wake_window_cycles = 0;
  uint32_t preempt_period_us = 10'000;  ///< 0: never
  /// Called when a pthread becomes known, and when it ends.
  void (*thread_begin_hook)(Thread*) = nullptr;
  void (*thread_end_hook)(Thread*) = nullptr;
  void (*worker_end_hook)(Worker*) = nullptr;
  /// Runs the member of a native thread (its number is its worker's) and whatever ghosts are left.
  void (*native_hook)(Bubble* bubble, Thread* native, const NativeJob& job) = nullptr;
  /// Runs queued work of a team as its member `index`, which has ended, until there is none. False: the
  /// region that was called `life` is over. Preemption is off.
  bool (*help_hook)(Thread* me, Bubble* bubble, uint64_t life, uint32_t index) = nullptr;
  /// Called in a forked child, by its only thread.
  void (*child_hook)() = nullptr;
  /// The machine on whose PUs workers have seats; null: they are where the kernel has them. Kept, so that
  /// every call gives the same answer. Called with preemption on. No hook: null.
  const topology::Machine* (*home_machine)() = nullptr;
  /// Binds the calling kernel thread to the thread's place. Called with preemption off.
  void (*place_hook)(Thread*) = nullptr;
};

/// Filled in by configure_hook(), set by the layer above before anything else happens here.
const Configuration& configuration();
using ConfigureHook = void (*)(Configuration*);
void set_configure_hook(ConfigureHook hook);

/// Runs the hook once, starts what is process-wide (handlers, fork handlers).
void configure();

}  // namespace bosk::sched
