// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads: made, woken, joined, changed.
#include <string.h>

#include "sched/address_wait.h"
#include "sched/search.h"
#include "threads/api.h"
#include "threads/attached.h"
#include "threads/lending.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

void copy_name(char* to, const char* name) {
  size_t length = name != nullptr ? strnlen(name, BOSK_NAME_LENGTH - 1) : 0;
  memcpy(to, name != nullptr ? name : "", length);
  to[length] = '\0';
}

/// The caller's structure may be of an older or newer version: what it lacks has its default, and what this
/// version does not know must be 0.
int read_attributes(const bosk_thread_attr_t* given, bosk_thread_attr_t* attr) {
  init_attributes(attr);
  if (given == nullptr) return BOSK_OK;
  constexpr size_t kLeast = sizeof(bosk_thread_attr_t);
  if (given->size < kLeast || given->size > 4096) return BOSK_EINVAL;
  memcpy(attr, given, kLeast);
  const auto* bytes = reinterpret_cast<const char*>(given);
  for (size_t i = kLeast; i < given->size; ++i)
    if (bytes[i] != 0) return BOSK_ENOTSUP;
  const bool sound = attr->priority != sched::kNoEntity &&
                     (attr->asleep == 0 || attr->bubble == nullptr) &&
                     attr->demand >= BOSK_DEMAND_UNKNOWN && attr->demand <= BOSK_DEMAND_MEMORY &&
                     attr->unused == 0;
  return sound ? BOSK_OK : BOSK_EINVAL;
}

/// A record as a thread that is asleep. Null: out of memory. Preemption is off.
ThreadRecord* make_record(const bosk_thread_attr_t& attr, uint32_t near) {
  ThreadRecord* thread = thread_table.take(near);
  if (thread == nullptr) return nullptr;
  thread->priority = attr.priority;
  thread->wanted_priority.store(sched::kNoEntity, std::memory_order_relaxed);
  thread->activity.store(sched::Activity::kReady, std::memory_order_relaxed);
  thread->figures.load.store(attr.load, std::memory_order_relaxed);
  thread->figures.cpu_ns.store(sched::kUnknown64, std::memory_order_relaxed);
  thread->figures.last_worker.store(sched::kUnknown32, std::memory_order_relaxed);
  thread->figures.last_domain.store(sched::kUnknown32, std::memory_order_relaxed);
  thread->figures.steals.store(0, std::memory_order_relaxed);
  thread->figures.wake_domain.store(sched::kUnknown32, std::memory_order_relaxed);
  thread->context = nullptr;
  thread->demand = static_cast<sched::Demand>(attr.demand);
  thread->domain = 0;
  thread->ended.store(0, std::memory_order_relaxed);
  thread->preemptible = attr.preemptible != 0;
  thread->light = attr.light != 0;
  thread->detached = attr.detached != 0;
  thread->claimed = thread->detached;
  copy_name(thread->name, attr.name);
  return thread;
}

/// Nobody has it, and its guard is held.
void let_run(Home* h, ThreadRecord& thread) {
  thread.life.store(Life::kAwake, std::memory_order_relaxed);
  h->engine.wake(thread, thread.domain);
}

}  // namespace

void init_attributes(bosk_thread_attr_t* attr) {
  memset(attr, 0, sizeof *attr);
  attr->size = sizeof *attr;
  attr->load = BOSK_UNKNOWN;
  attr->preemptible = 1;
}

/// `domain`: where it is put first, if that is not for the attributes to say.
static int create(bosk_thread_t* out, const bosk_thread_attr_t* given, uint32_t domain,
                  void* (*function)(void*), void* argument) {
  bosk_thread_attr_t attr;
  if (const int error = read_attributes(given, &attr)) return error;
  if (function == nullptr || (out == nullptr && attr.detached == 0)) return BOSK_EINVAL;
  sched::Thread* me = omp::current_thread();
  int error = BOSK_OK;
  Home* h = settle(me, true, &error);
  if (h == nullptr) return error;
  uint8_t level;
  uint8_t affinity;
  if (!find_level(h, attr.level, &level) || !find_level(h, attr.affinity, &affinity)) {
    count_ended(h);
    return BOSK_ENOENT;
  }
  Inside inside(me);
  const uint32_t near = me->worker->index;
  ThreadRecord* thread = make_record(attr, near);
  if (thread == nullptr) {
    count_ended(h);
    return BOSK_ENOMEM;
  }
  thread->function = function;
  thread->data = argument;
  thread->affinity = affinity;
  thread->domain = domain != topology::kNone ? domain : domain_here(h, level);
  const auto handle = handle_of(thread);
  thread->guard.lock();
  if (attr.bubble != nullptr) {
    HeldBubble bubble(attr.bubble);
    if (!bubble) {
      thread->guard.unlock();
      thread_table.give(thread, near);
      count_ended(h);
      return BOSK_ESTALE;
    }
    if (out != nullptr) *out = handle;
    thread->life.store(Life::kAwake, std::memory_order_relaxed);
    put_into(h, *bubble, *thread, false);
  } else {
    if (out != nullptr) *out = handle;
    if (attr.asleep != 0)
      thread->life.store(Life::kAsleep, std::memory_order_relaxed);
    else
      let_run(h, *thread);
  }
  thread->guard.unlock();
  return BOSK_OK;
}

int create_thread(bosk_thread_t* out, const bosk_thread_attr_t* attr, void* (*function)(void*),
                  void* argument) {
  return create(out, attr, topology::kNone, function, argument);
}

int create_helper(const char* name, uint32_t domain, void* (*function)(void*), void* argument) {
  bosk_thread_attr_t attr;
  init_attributes(&attr);
  attr.name = name;
  attr.light = 1;
  attr.detached = 1;
  return create(nullptr, &attr, domain, function, argument);
}

int wake_thread(bosk_thread_t handle) {
  sched::Thread* me = omp::current_thread();
  Inside inside(me);
  HeldThread thread(handle);
  if (!thread) return BOSK_ESTALE;
  if (thread->life.load(std::memory_order_relaxed) != Life::kAsleep) return BOSK_ESTATE;
  let_run(home(), *thread);
  return BOSK_OK;
}

/// The caller is about to wait for the thread. If nobody has started it, it goes first of its equals: with
/// joins all over a tree of threads, first come first served would start all of them before one ends, each
/// with a stack. A light one runs here, as a call; in a queue, it has been let out.
static void prefer(sched::Thread* me, ThreadRecord& thread) {
  Inside inside(me);
  sched::Thread* carrier = nullptr;
  {
    base::SpinGuard guard(thread.guard);
    if (thread.life.load(std::memory_order_relaxed) != Life::kAwake) return;
    // On a carrier with room for a whole thread, which is not bound to a kernel thread.
    if (!thread.light || running(me) == nullptr || !sched::may_serve_here(me)) {
      if (thread.bubble != nullptr) carrier = borrow(home(), me, thread);
      if (carrier == nullptr) {
        bring_forward(thread);
        return;
      }
    }
    if (carrier == nullptr) {
      if (!take_to_run(thread)) return;
      if (thread.context != nullptr) {
        const sched::RunQueue* queue =
            sched::requeue(thread, home()->queues.of(thread.domain), true);
        if (queue != nullptr) announce(home(), queue->domain, 1);
        return;
      }
    }
  }
  if (carrier != nullptr)
    sched::wait_for_entity(me, thread.ended, 0, &thread, carrier);
  else
    run(me, &thread);
}

int join_thread(bosk_thread_t handle, void** result) {
  sched::Thread* me = omp::current_thread();
  ThreadRecord* record;
  {
    Inside inside(me);
    HeldThread thread(handle);
    if (!thread) return BOSK_ESTALE;
    if (thread.get() == running(me)) return BOSK_EDEADLK;
    if (thread->claimed) return BOSK_ESTATE;
    thread->claimed = true;
    record = thread.get();
  }
  if (record->ended.load(std::memory_order_acquire) == 0) prefer(me, *record);
  while (record->ended.load(std::memory_order_acquire) == 0) sched::wait_on(record->ended, 0);
  Inside inside(me);
  // After who ended it, which may still be on its way out.
  record->guard.lock();
  void* const value = record->result;
  record->life.store(Life::kFree, std::memory_order_relaxed);
  record->guard.unlock();
  let_memory_go(*record);
  thread_table.give(record, me->worker->index);
  if (result != nullptr) *result = value;
  return BOSK_OK;
}

int detach_thread(bosk_thread_t handle) {
  sched::Thread* me = omp::current_thread();
  Inside inside(me);
  HeldThread thread(handle);
  if (!thread) return BOSK_ESTALE;
  if (thread->claimed) return BOSK_ESTATE;
  thread->claimed = thread->detached = true;
  if (thread->life.load(std::memory_order_relaxed) != Life::kEnded) return BOSK_OK;
  ThreadRecord* record = thread.get();
  record->life.store(Life::kFree, std::memory_order_relaxed);
  thread.let_go();
  let_memory_go(*record);
  thread_table.give(record, me->worker->index);
  return BOSK_OK;
}

bosk_thread_t this_thread() { return handle_of(running(context::self())); }

int yield_thread() {
  sched::Thread* me = omp::current_thread();
  const ThreadRecord* thread = running(me);
  Inside inside(me);
  const int32_t above =
      thread != nullptr
          ? sched::just_below(std::atomic_ref(me->entity->priority).load(std::memory_order_relaxed))
          : sched::kNoEntity;
  sched::yield_to_entities(me, above);
  return BOSK_OK;
}

int exit_thread(void* result) {
  sched::Thread* me = context::self();
  if (running(me) != nullptr) exit_running(me, result);
  return BOSK_EPERM;
}

int set_thread_priority(bosk_thread_t handle, int32_t priority) {
  if (priority == sched::kNoEntity) return BOSK_EINVAL;
  sched::Thread* me = omp::current_thread();
  Inside inside(me);
  HeldThread thread(handle);
  if (!thread) return BOSK_ESTALE;
  const bool nobody_has_it =
      thread.get() == running(me) || thread->life.load(std::memory_order_relaxed) != Life::kAwake;
  change_priority(*thread, priority, nobody_has_it, thread->wanted_priority);
  return BOSK_OK;
}

int get_thread_priority(bosk_thread_t handle, int32_t* priority) {
  if (priority == nullptr) return BOSK_EINVAL;
  Inside inside(omp::current_thread());
  HeldThread thread(handle);
  if (!thread) return BOSK_ESTALE;
  const int32_t wanted = thread->wanted_priority.load(std::memory_order_relaxed);
  *priority = wanted != sched::kNoEntity
                  ? wanted
                  : std::atomic_ref(thread->priority).load(std::memory_order_relaxed);
  return BOSK_OK;
}

int set_thread_load(bosk_thread_t handle, uint32_t load) {
  Inside inside(omp::current_thread());
  HeldThread thread(handle);
  Home* h = home();
  if (!thread || h == nullptr) return BOSK_ESTALE;
  h->engine.set_load(*thread, load);
  return BOSK_OK;
}

int get_thread_load(bosk_thread_t handle, uint32_t* load) {
  if (load == nullptr) return BOSK_EINVAL;
  Inside inside(omp::current_thread());
  HeldThread thread(handle);
  if (!thread) return BOSK_ESTALE;
  *load = thread->figures.load.load(std::memory_order_relaxed);
  return BOSK_OK;
}

int set_thread_preemptible(bosk_thread_t handle, int32_t preemptible) {
  sched::Thread* me = omp::current_thread();
  Inside inside(me);
  HeldThread thread(handle);
  if (!thread) return BOSK_ESTALE;
  if (thread.get() != running(me)) return BOSK_EPERM;
  thread->preemptible = preemptible != 0;
  return BOSK_OK;
}

int get_thread_name(bosk_thread_t handle, char* name, size_t size) {
  if (name == nullptr || size == 0) return BOSK_EINVAL;
  Inside inside(omp::current_thread());
  HeldThread thread(handle);
  if (!thread) return BOSK_ESTALE;
  const size_t length = strnlen(thread->name, size - 1);
  memcpy(name, thread->name, length);
  name[length] = '\0';
  return BOSK_OK;
}

int get_thread_bubble(bosk_thread_t handle, bosk_bubble_t* bubble) {
  if (bubble == nullptr) return BOSK_EINVAL;
  Inside inside(omp::current_thread());
  HeldThread thread(handle);
  if (!thread) return BOSK_ESTALE;
  *bubble = handle_of(bubble_of(*thread));
  return BOSK_OK;
}

}  // namespace bosk::threads
