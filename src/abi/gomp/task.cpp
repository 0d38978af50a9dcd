// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_task and GOMP_taskloop*, waits, taskgroups, omp_fulfill_event.
#include <stdint.h>

#include "abi/gomp/export.h"
#include "omp/explicit_task.h"
#include "omp/target_region.h"
#include "omp/taskgroup.h"
#include "omp/taskloop.h"
#include "sched/scheduler.h"

using namespace bosk::omp;
namespace sched = bosk::sched;

// Compilers pass what they know of: `depend`, `priority` and `detach` are rubbish unless their flag
// is set.
BOSK_EXPORT void GOMP_task(void (*fn)(void*), void* data, void (*cpyfn)(void*, void*),
                           long arg_size, long arg_align, bool if_clause, unsigned flags,
                           void** depend, int priority, void* detach) {
  if (BOSK_LIKELY(cpyfn == nullptr && (flags & ~(kTaskUntied | kTaskMergeable)) == 0) &&
      create_plain_task(fn, data, static_cast<size_t>(arg_size), static_cast<size_t>(arg_align),
                        if_clause))
    return;
  create_task({fn, data, cpyfn, static_cast<size_t>(arg_size), static_cast<size_t>(arg_align),
               if_clause, flags, depend, priority, detach, nullptr});
}

BOSK_EXPORT void GOMP_taskloop(void (*fn)(void*), void* data, void (*cpyfn)(void*, void*),
                               long arg_size, long arg_align, unsigned flags,
                               unsigned long num_tasks, int priority, long start, long end,
                               long step) {
  taskloop({fn, data, cpyfn, static_cast<size_t>(arg_size), static_cast<size_t>(arg_align), true,
            flags, nullptr, priority, nullptr, nullptr},
           {static_cast<uint64_t>(start), static_cast<uint64_t>(end), static_cast<uint64_t>(step),
            step > 0},
           true, num_tasks);
}

BOSK_EXPORT void GOMP_taskloop_ull(void (*fn)(void*), void* data, void (*cpyfn)(void*, void*),
                                   long arg_size, long arg_align, unsigned flags,
                                   unsigned long num_tasks, int priority, unsigned long long start,
                                   unsigned long long end, unsigned long long step) {
  taskloop({fn, data, cpyfn, static_cast<size_t>(arg_size), static_cast<size_t>(arg_align), true,
            flags, nullptr, priority, nullptr, nullptr},
           {start, end, step, (flags & kTaskUp) != 0}, false, num_tasks);
}

BOSK_EXPORT void GOMP_taskwait() {
  sched::Thread* me = bosk::context::self();
  // relaxed: zero means that the task itself has created nothing that is unfinished.
  if (me == nullptr || me->task->children.load(std::memory_order_relaxed) == 0) return;
  taskwait(me);
}

BOSK_EXPORT void GOMP_taskyield() {
  sched::Thread* me = bosk::context::self();
  if (me == nullptr || run_one_descendant(me)) return;
  if (me->worker == nullptr || me->pool == nullptr) return;
  sched::enter(me);
  sched::yield(me);
  sched::leave(me);
}

BOSK_EXPORT void GOMP_taskwait_depend(void** depend) { keep_dependences(depend, false); }
BOSK_EXPORT void GOMP_taskwait_depend_nowait(void** depend) { keep_dependences(depend, true); }

BOSK_EXPORT void GOMP_taskgroup_start() { taskgroup_push(current_task()); }

BOSK_EXPORT void GOMP_taskgroup_end() { taskgroup_end(); }

BOSK_EXPORT void omp_fulfill_event(uintptr_t event) { fulfill_event(event); }

BOSK_EXPORT_ALIAS(omp_fulfill_event) void omp_fulfill_event_(uintptr_t event);
