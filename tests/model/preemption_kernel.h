// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernel threads for the models of the preemption hand-over.
#pragma once

#include "base/command_word.h"
#include "checker/expect.h"
#include "sched/preemption_protocol.h"

namespace preemption_model {

using enum std::memory_order;
using A = model::ModelAtomics;

/// A kernel thread. Of the kernel's timer only that it runs or does not; what the start of a timer
/// reads of the kernel thread is `tid`.
struct Kernel {
  static constexpr uint32_t kRun = 1;
  static constexpr uint32_t kEnd = 2;
  A::atomic<uint32_t> timer_armed{0};
  A::atomic<int> running{0};
  A::plain<int> tid{1};
  bosk::base::CommandWord<A> command;
  int thread_pointer = 1;
  A::plain<int> run_sp{0};
  A::plain<int> run_thread_pointer{0};
  A::plain<uint64_t> run_mask{0};
};

struct Worker;
struct Thread {
  Kernel* own = nullptr;
  int sp = 0;
  A::plain<int> left{1};  // its stack: 1 while nobody stands on it
  A::plain<Worker*> worker{nullptr};
  A::plain<Worker*> last_worker{nullptr};
  Worker* pinned = nullptr;
};
struct Worker {
  A::plain<Thread*> current{nullptr};
  A::plain<Thread*> keeper{nullptr};
  A::plain<int> counts{0};
  A::atomic<Kernel*> kernel{nullptr};
  A::atomic<Thread*> ready{nullptr};
};

// The kernel's part: its own locks order more than this.
inline void start(Kernel* kernel) {
  MODEL_ASSERT(kernel->tid == 1);
  kernel->running.store(1, relaxed);
}
inline void stop(Kernel* kernel) { kernel->running.store(0, relaxed); }
inline void arm(Kernel* kernel) {
  bosk::sched::arm_ticks(kernel->timer_armed, [=] { start(kernel); });
}
inline void disarm(Kernel* kernel) {
  bosk::sched::disarm_ticks(kernel->timer_armed, [=] { stop(kernel); });
}

}  // namespace preemption_model
