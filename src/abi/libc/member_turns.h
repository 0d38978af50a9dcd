// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who may give a turn to others from within a function of libc's.
#pragma once

#include "base/syscalls.h"
#include "context/thread_block.h"
#include "sched/scheduler.h"

namespace bosk::libc {

/// Not so in the child of a vfork() that a member has made: it has that member's memory until it execs.
inline bool is_on_kernel_thread(const sched::Thread* me) {
  return base::thread_id() == sched::kernel_of(me)->tid;
}

/// A member of an open region, or an explicit thread, in the program's code. Only of these may be asked what their workers have: a pause
/// waits for none of them, and takes the workers of all others apart (sched/pause.h).
inline bool is_member(const sched::Thread* me) {
  if (me == nullptr || me->pool == nullptr) return false;
  if (context::thread_block()->preempt_off != 0) return false;
  return me->is_entity() ||
         (me->bubble != nullptr && me->bubble->depth.load(std::memory_order_relaxed) != 0);
}

inline bool may_give_way(const sched::Thread* me) {
  return is_member(me) && is_on_kernel_thread(me);
}

}  // namespace bosk::libc
