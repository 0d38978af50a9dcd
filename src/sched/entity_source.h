// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Explicit threads, which programs make themselves: how the workers of a pool find and run them.
//
// They are entities of a tree of bubbles, queued on the domains of the machine (domain_queues.h). Where
// from is the business of the layer above; this is all that workers know of it. One pool of the process
// has a source, all others have none and pay for the look at a null pointer where they find nothing
// else to do.
//
// A thread that has not started is its record. Whoever finds it runs it on the carrier that it stands
// on; if it blocks it keeps that carrier, stack and identity, until it ends. Then it is an entity again
// each time that it becomes ready: it goes back to a queue of the machine, or into its bubble if that
// is being regenerated, and not to the queue of a worker. (Two ways lead there all the same: a barrier
// of an OpenMP team that it opened, and the way back from a kernel thread of its own. It is run from
// there, and is an entity again at its next wait.)
//
// No wake-up is lost: who makes an entity ready enqueues it and then asks for idle workers, with a light
// barrier between; who goes to sleep announces itself, passes a heavy barrier and looks at its queues
// again (idle.cpp). Of the two one sees the other.
#pragma once

#include <stdint.h>

#include "sched/bubble_tree.h"

namespace bosk::sched {

struct Pool;
struct Thread;
struct Worker;

enum class Rescue : uint8_t {
  kNothing,  ///< there is nothing to be done
  kSoon,     ///< there may be, if nobody else comes for it: the worker shall not sleep
  kDone,     ///< something is here now
};

struct ExplicitThread : TreeEntity {
  Thread* context = nullptr;  ///< that runs it; null: not started
};

enum class TickVerdict : uint8_t {
  kNothing,
  kSliceRuns,  ///< it goes on, and only a later tick can end its bubble's time slice
  kLeave,      ///< its bubble is being regenerated
};

/// Everything is called with preemption off unless it says otherwise.
struct EntitySource {
  /// Would take() find something of a priority greater than `above`? Relaxed loads, one a level: a hint.
  bool (*has_work)(const Worker* w, int32_t above);
  /// The best that the worker may run, off its queue; null: none.
  ExplicitThread* (*take)(Worker* w, int32_t above);
  /// For when there is no carrier: one that has started, though others may come before it. The factory may
  /// wait for a lock of libc that it holds.
  ExplicitThread* (*take_started)(Worker* w);
  /// It cannot be run here after all: back on its queue, in front.
  void (*put_back)(Worker* w, ExplicitThread* thread);
  /// The worker has nothing to do. True: something was changed, it shall look again.
  bool (*idle)(Worker* w);
  /// Where ticks may miss: brings something here that is queued for others alone, none of whom has come for it for
  /// some time (they compute, or are blocked in the kernel, for as long as they please).
  Rescue (*rescue)(Worker* w);
  /// Starts the thread on the calling carrier and returns when it has ended, perhaps on another worker.
  void (*run)(Thread* me, ExplicitThread* thread);
  /// The context, which has left its stack, is ready. Any kernel thread may call this. `front`: before
  /// those of its priority.
  void (*ready)(Thread* context, Worker* near, bool front);
  /// The context is switched to, or away from: figures.
  void (*comes)(Thread* context, const Worker* w);
  void (*left)(Thread* context);
  /// A tick found the context running.
  TickVerdict (*tick)(Thread* context);
  /// Its bubble is being regenerated, and it has to leave. For whoever stops the ticks.
  bool (*is_recalled)(const Thread* context);
  bool (*preemptible)(const Thread* context);
  /// There are explicit threads that have not ended: no pause.
  bool (*is_busy)(const Pool* pool);
  /// The initial thread of the pool ends. Preemption is on.
  void (*thread_ends)(Thread* me);
};

/// Called in a forked child; null: there is nothing to forget.
inline constinit std::atomic<void (*)()> forget_entities_after_fork{nullptr};

}  // namespace bosk::sched
