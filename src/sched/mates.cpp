// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mates: further contexts of one member, under the member's own identity.
#include "sched/mates.h"

#include <dlfcn.h>

#include "context/annotations.h"
#include "sched/configuration.h"

namespace bosk::sched {
namespace {

void give_mate_back(void* argument, Worker* w) {
  give_carrier(w, own_thread_of(static_cast<Thread*>(argument)));
}

void go_to(Worker* w, Thread* me, Thread* mate) {
  mate->identity->block->self = mate;
  context::LeftStack left;
  context::leave_stack_for(*mate->own, &left);
  switch_to(w, me, mate);
  context::on_stack_again(&left);
}

}  // namespace

bool spins_in_program(Worker* w, const Thread* me, uintptr_t pc) {
  constexpr uintptr_t kNear = 128;
  constexpr uint32_t kTicks = 2;
  if (pc - w->spin_pc + kNear > 2 * kNear) {
    w->spin_pc = pc;
    w->spin_ticks = 0;
    return false;
  }
  return ++w->spin_ticks >= kTicks && is_in_program(me, pc);
}

bool is_in_program(const Thread* me, uintptr_t pc) {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
  // Lock-free and safe in signal handlers (glibc 2.35).
  const auto& hooks = configuration();
  dl_find_object here;
  dl_find_object program;
  if (hooks.code_hook == nullptr || _dl_find_object(reinterpret_cast<void*>(pc), &here) != 0 ||
      _dl_find_object(const_cast<void*>(hooks.code_hook(me->bubble)), &program) != 0)
    return false;
  return here.dlfo_map_start == program.dlfo_map_start;
#else
  (void)me;
  return false;
#endif
}

void turn_ring(Thread* me) {
  LanguageState state;
  const auto& hooks = configuration();
  if (hooks.leave_language != nullptr) state = hooks.leave_language();
  go_to(me->worker, me, me->next_mate);
  if (hooks.enter_language != nullptr) hooks.enter_language(state);
}

Thread* make_mate(Worker* w, Thread* me) {
  Thread* mate = take_carrier(w);
  if (mate == nullptr) {
    request_carriers(2);
    return nullptr;
  }
  mate->run_as(me->identity);
  mate->needs_kernel = me->needs_kernel;
  mate->pinned = me->pinned;
  mate->bubble = me->bubble;
  mate->task = nullptr;
  mate->member = nullptr;
  mate->mate_of = me;
  mate->errand = Errand::kMate;
  mate->mate_team = me->bubble;
  if (me->next_mate == nullptr) me->next_mate = me;
  mate->next_mate = me->next_mate;
  me->next_mate = mate;
  return mate;
}

bool has_mates_of_team(const Thread* me, const Bubble* bubble) {
  for (const Thread* at = me->next_mate; at != nullptr && at != me; at = at->next_mate)
    if (at->mate_of != nullptr && at->mate_team == bubble) return true;
  return false;
}

void run_as_mate(Thread* me) {
  context::on_stack_again(nullptr);
  Bubble* bubble = me->bubble;
  configuration().assist_hook(me, me->mate_of, bubble);
  // Out of the ring, and on with the next of it.
  Thread* next = me->next_mate;
  Thread* before = next;
  while (before->next_mate != me) before = before->next_mate;
  before->next_mate = next == before ? nullptr : next;
  Worker* w = me->worker;
  me->next_mate = nullptr;
  me->mate_of = nullptr;
  me->errand = Errand::kNone;
  me->bubble = nullptr;
  w->post = {give_mate_back, me};
  next->identity->block->self = next;
  context::leave_stack_for(*next->own, nullptr);
  switch_to(w, me, next);
}

}  // namespace bosk::sched
