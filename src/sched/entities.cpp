// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Explicit threads as workers see them: found, started, switched to.
#include "sched/doing.h"
#include "sched/scheduler.h"

namespace bosk::sched {

void entity_ready(Thread* context, Worker* near, bool front) {
  entities_of_thread(context)->ready(context, near, front);
}

Thread* started_entity(Worker* w) {
  const EntitySource* source = entities_of(w);
  ExplicitThread* thread = source != nullptr ? source->take_started(w) : nullptr;
  return thread != nullptr ? thread->context : nullptr;
}

Thread* next_entity(Worker* w, int32_t above) {
  const EntitySource* source = entities_of(w);
  if (source == nullptr) return nullptr;
  ExplicitThread* thread = source->take(w, above);
  if (thread == nullptr) return nullptr;
  if (thread->context != nullptr) return thread->context;
  Thread* carrier = take_carrier(w);
  if (carrier == nullptr) {
    source->put_back(w, thread);
    request_carriers(2);
    return nullptr;
  }
  carrier->errand = Errand::kEntity;
  carrier->entity = thread;
  return carrier;
}

Thread* carrier_to_go_on(const Thread* me) {
  Worker* w = me->worker;
  if (me->pinned != nullptr || !w->ready.empty_hint() || w->groups != nullptr ||
      w->native_condition.holds(w->native) || has_ghosts(w))
    return nullptr;
  return take_carrier(w);
}

/// Preemption off before and after; the program's function runs with it on.
static void run_here(Thread* me, ExplicitThread* thread) {
  Worker* w = me->worker;
  report_before(w, nullptr);
  arm_timer(w);
  const DoesMeanwhile computes(me, Does::kComputing);
  entities_of(w)->run(me, thread);
}

bool run_entity(Thread* me, Thread** next) {
  Worker* w = me->worker;
  const EntitySource* source = entities_of(w);
  if (BOSK_LIKELY(source == nullptr)) return false;
  ExplicitThread* thread = source->take(w, kNoEntity);
  if (thread == nullptr) return false;
  if (thread->context != nullptr) {
    *next = thread->context;
    return false;
  }
  run_here(me, thread);
  return true;
}

bool look_afar(Worker* w) {
  const EntitySource* source = entities_of(w);
  return source != nullptr && source->idle(w);
}

void start_entity(Thread* me) {
  me->errand = Errand::kNone;
  run_here(me, me->entity);
}

}  // namespace bosk::sched
