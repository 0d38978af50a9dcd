// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A fork finds nothing marked. Before: the gate is taken, all is put back, and nobody marks until the child is there. The kernel
// duplicates memory without its userfaultfd: what was still in a shadow would be zero in the child.
#include <pthread.h>

#include "base/fork_order.h"
#include "base/message.h"
#include "memory/next_touch/mappings.h"
#include "memory/next_touch/reserve.h"
#include "memory/next_touch/resolve.h"
#include "memory/next_touch/signals.h"
#include "memory/next_touch/slots.h"
#include "memory/next_touch/state.h"

namespace bosk::memory {
namespace {

/// Of the forking thread: its signals stay blocked until the gate is open again (gate.h).
constinit base::KernelSigset mask_before = 0;

void prepare() {
  lock_starts_for_fork();
  const base::KernelSigset all = ~base::KernelSigset{0};
  base::KernelSigset before = 0;
  base::raw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, base::address_of(&all),
                    base::address_of(&before), sizeof all);
  state.gate.lock();
  mask_before = before;  // ours from here
  constexpr int kMostTries = 10'000;
  bool all_back = true;
  for (uint32_t i = state.table.size(); i-- > 0;) {
    Region* region = state.table[i];
    bool done = put_back_all(*region, region->begin, region->end);
    for (int tries = 0; !done && tries < kMostTries; ++tries) {
      base::raw_syscall(SYS_sched_yield);
      done = put_back_all(*region, region->begin, region->end);
    }
    all_back = all_back && done;
    if (done) end_region(region);
  }
  if (!all_back)
    base::say("fork: no memory to put marked pages back; the child finds some of them empty");
  lock_handlers_for_fork();
}

void in_parent() {
  const base::KernelSigset before = mask_before;
  unlock_handlers_after_fork();
  state.gate.unlock();
  base::set_signal_mask(before);
  unlock_starts_after_fork();
}

void in_child() {
  const base::KernelSigset before = mask_before;
  unlock_handlers_after_fork();
  state.gate.reset();
  if (forget_started_backends()) {
    reset_chunk_locks();
    kUffdBackend.forget_after_fork();
    kUffdThreadBackend.forget_after_fork();
    forget_reserve();
    forget_slots(state.table.size() != 0);
    mappings_forget_after_fork();
  }
  base::set_signal_mask(before);
  unlock_starts_after_fork();
}

[[gnu::constructor(base::kForksOfNextTouch)]] void hold_forks() {
  pthread_atfork(prepare, in_parent, in_child);
}

}  // namespace
}  // namespace bosk::memory
