// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ghosts under identities of their own, on the stack of the thread that runs them.
#pragma once

#include "sched/scheduler.h"

namespace bosk::sched {

/// Installs `identity` for what the thread runs next on its stack. Preemption is off before and after
/// (in the old block, then in the new one: the flag belongs to the identity).
inline void install_identity(Thread* me, context::Identity* identity) {
  identity->block->self = me;
  identity->block->preempt_off = 1;
  me->run_as(identity);
  context::set_thread_pointer(identity->thread_pointer);
}

/// The carrier that was made with a donor, after something else may have run under its identity.
inline Thread* own_thread(context::Identity* identity) {
  auto* thread = static_cast<Thread*>(identity->records);
  identity->block->self = thread;
  return thread;
}

/// An identity that no living member has. Waits for the factory if it must; preemption is off.
context::Identity* fresh_identity(Thread* me);

/// The identity that the level-1 member after `index` others without a native thread keeps from region
/// to region.
context::Identity* member_identity(Thread* me, uint32_t index);

/// Keeps `first` … `last` (linked by next) until the bubble ends.
void hold_identities(Bubble* bubble, context::Identity* first, context::Identity* last);

/// The one of these that member `index` had; null: none. The team must be kept from ending.
context::Identity* held_identity(Bubble* bubble, uint32_t index);

/// The bubble has ended: its members' identities can be used again.
void release_identities(Worker* w, Bubble* bubble);

}  // namespace bosk::sched
