// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk_thread_*: threads (include/bosk/bosk.h).
#include "abi/bosk/answer.h"
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
  const int error = create_thread(thread, attr, function, argument);
  // What the attributes name has been read where the code says so.
  switch (error) {
    case BOSK_ENOENT:
      return answer(error, __func__, of_level(attr->level), of_affinity(attr->affinity));
    case BOSK_ESTALE:
      return answer(error, __func__, of_bubble(attr->bubble));
    default:
      return answer(error, __func__);
  }
}

BOSK_EXPORT int bosk_thread_wake(bosk_thread_t thread) {
  return answer(wake_thread(thread), __func__, of_thread(thread));
}

BOSK_EXPORT int bosk_thread_join(bosk_thread_t thread, void** result) {
  return answer(join_thread(thread, result), __func__, of_thread(thread));
}

BOSK_EXPORT int bosk_thread_detach(bosk_thread_t thread) {
  return answer(detach_thread(thread), __func__, of_thread(thread));
}

BOSK_EXPORT bosk_thread_t bosk_thread_self() { return this_thread(); }

BOSK_EXPORT int bosk_thread_yield() { return answer(yield_thread(), __func__); }

BOSK_EXPORT int bosk_thread_exit(void* result) { return answer(exit_thread(result), __func__); }

BOSK_EXPORT int bosk_thread_set_priority(bosk_thread_t thread, int32_t priority) {
  return answer(set_thread_priority(thread, priority), __func__, of_thread(thread));
}

BOSK_EXPORT int bosk_thread_get_priority(bosk_thread_t thread, int32_t* priority) {
  return answer(get_thread_priority(thread, priority), __func__, of_thread(thread));
}

BOSK_EXPORT int bosk_thread_set_load(bosk_thread_t thread, uint32_t load) {
  return answer(set_thread_load(thread, load), __func__, of_thread(thread));
}

BOSK_EXPORT int bosk_thread_get_load(bosk_thread_t thread, uint32_t* load) {
  return answer(get_thread_load(thread, load), __func__, of_thread(thread));
}

BOSK_EXPORT int bosk_thread_set_preemptible(bosk_thread_t thread, int32_t preemptible) {
  return answer(set_thread_preemptible(thread, preemptible), __func__, of_thread(thread));
}

BOSK_EXPORT int bosk_thread_get_name(bosk_thread_t thread, char* name, size_t size) {
  return answer(get_thread_name(thread, name, size), __func__, of_thread(thread));
}

BOSK_EXPORT int bosk_thread_get_bubble(bosk_thread_t thread, bosk_bubble_t* bubble) {
  return answer(get_thread_bubble(thread, bubble), __func__, of_thread(thread));
}

BOSK_EXPORT int bosk_thread_get_stats(bosk_thread_t thread, bosk_stats_t* stats) {
  return answer(thread_stats(thread, stats), __func__, of_thread(thread));
}
