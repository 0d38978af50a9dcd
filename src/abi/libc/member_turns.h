// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who may give a turn to others from within a function of libc's.
#pragma once

#include "context/thread_block.h"
#include "sched/scheduler.h"

namespace bosk::libc {

/// A member of an open region, or an explicit thread, in the program's code.
inline bool may_give_way(const sched::Thread* me) {
  if (me == nullptr || me->pool == nullptr) return false;
  if (context::thread_block()->preempt_off != 0) return false;
  return me->is_entity() ||
         (me->bubble != nullptr && me->bubble->depth.load(std::memory_order_relaxed) != 0);
}

}  // namespace bosk::libc
