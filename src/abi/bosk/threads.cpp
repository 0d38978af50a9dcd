// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk_thread_*: threads (include/bosk/bosk.h).
#include "abi/gomp/export.h"
#include "threads/operations.h"

using namespace bosk::threads;

BOSK_EXPORT int bosk_thread_attr_init_sized(bosk_thread_attr_t* attr, size_t size) {
  if (attr == nullptr || size != sizeof *attr) return BOSK_EINVAL;
  init_attributes(attr);
  return BOSK_OK;
}

BOSK_EXPORT int bosk_thread_create(bosk_thread_t* thread, const bosk_thread_attr_t* attr,
                                   void* (*function)(void*), void* argument) {
  return create_thread(thread, attr, function, argument);
}

BOSK_EXPORT int bosk_thread_wake(bosk_thread_t thread) { return wake_thread(thread); }

BOSK_EXPORT int bosk_thread_join(bosk_thread_t thread, void** result) {
  return join_thread(thread, result);
}

BOSK_EXPORT int bosk_thread_detach(bosk_thread_t thread) { return detach_thread(thread); }

BOSK_EXPORT bosk_thread_t bosk_thread_self() { return this_thread(); }

BOSK_EXPORT int bosk_thread_yield() { return yield_thread(); }

BOSK_EXPORT int bosk_thread_exit(void* result) { return exit_thread(result); }

BOSK_EXPORT int bosk_thread_set_priority(bosk_thread_t thread, int32_t priority) {
  return set_thread_priority(thread, priority);
}

BOSK_EXPORT int bosk_thread_get_priority(bosk_thread_t thread, int32_t* priority) {
  return get_thread_priority(thread, priority);
}

BOSK_EXPORT int bosk_thread_set_load(bosk_thread_t thread, uint32_t load) {
  return set_thread_load(thread, load);
}

BOSK_EXPORT int bosk_thread_get_load(bosk_thread_t thread, uint32_t* load) {
  return get_thread_load(thread, load);
}

BOSK_EXPORT int bosk_thread_set_preemptible(bosk_thread_t thread, int32_t preemptible) {
  return set_thread_preemptible(thread, preemptible);
}

BOSK_EXPORT int bosk_thread_get_name(bosk_thread_t thread, char* name, size_t size) {
  return get_thread_name(thread, name, size);
}

BOSK_EXPORT int bosk_thread_get_bubble(bosk_thread_t thread, bosk_bubble_t* bubble) {
  return get_thread_bubble(thread, bubble);
}

BOSK_EXPORT int bosk_thread_get_stats(bosk_thread_t thread, bosk_stats_t* stats) {
  return thread_stats(thread, stats);
}
