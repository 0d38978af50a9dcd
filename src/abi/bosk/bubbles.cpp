// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk_bubble_*: bubbles (include/bosk/bosk.h).
#include "abi/bosk/answer.h"
#include "abi/gomp/export.h"
#include "threads/operations.h"

using namespace bosk::threads;
namespace topology = bosk::topology;

BOSK_EXPORT int bosk_bubble_create(bosk_bubble_t* bubble) {
  return answer(create_bubble(bubble), __func__);
}

BOSK_EXPORT int bosk_bubble_destroy(bosk_bubble_t bubble) {
  return answer(destroy_bubble(bubble), __func__, of_bubble(bubble));
}

BOSK_EXPORT int bosk_bubble_insert_thread(bosk_bubble_t bubble, bosk_thread_t thread) {
  return answer(insert_thread(bubble, thread), __func__, of_bubble(bubble), of_thread(thread));
}

BOSK_EXPORT int bosk_bubble_insert_bubble(bosk_bubble_t outer, bosk_bubble_t inner) {
  return answer(insert_bubble(outer, inner), __func__, of_bubble(outer), of_bubble(inner));
}

BOSK_EXPORT int bosk_bubble_remove_thread(bosk_thread_t thread) {
  return answer(remove_thread(thread), __func__, of_thread(thread));
}

BOSK_EXPORT int bosk_bubble_remove_bubble(bosk_bubble_t inner) {
  return answer(remove_bubble(inner), __func__, of_bubble(inner));
}

BOSK_EXPORT int bosk_bubble_move_thread(bosk_bubble_t to, bosk_thread_t thread) {
  return answer(move_thread(to, thread), __func__, of_bubble(to), of_thread(thread));
}

BOSK_EXPORT int bosk_bubble_wake(bosk_bubble_t bubble, const char* level) {
  return answer(wake_bubble(bubble, level), __func__, of_bubble(bubble), of_level(level));
}

BOSK_EXPORT int bosk_bubble_join(bosk_bubble_t bubble) {
  return answer(join_bubble(bubble), __func__, of_bubble(bubble));
}

BOSK_EXPORT int bosk_bubble_barrier(bosk_bubble_t bubble, int* serial) {
  return answer(bubble_barrier(bubble, serial), __func__, of_bubble(bubble));
}

BOSK_EXPORT int bosk_bubble_get_bubble(bosk_bubble_t bubble, bosk_bubble_t* outer) {
  return answer(get_bubble_bubble(bubble, outer), __func__, of_bubble(bubble));
}

BOSK_EXPORT int bosk_bubble_set_priority(bosk_bubble_t bubble, int32_t priority) {
  return answer(set_bubble_priority(bubble, priority), __func__, of_bubble(bubble));
}

BOSK_EXPORT int bosk_bubble_get_priority(bosk_bubble_t bubble, int32_t* priority) {
  return answer(get_bubble_priority(bubble, priority), __func__, of_bubble(bubble));
}

BOSK_EXPORT int bosk_bubble_set_load(bosk_bubble_t bubble, uint32_t load) {
  return answer(set_bubble_load(bubble, load), __func__, of_bubble(bubble));
}

BOSK_EXPORT int bosk_bubble_get_load(bosk_bubble_t bubble, uint32_t* load) {
  return answer(get_bubble_load(bubble, load), __func__, of_bubble(bubble));
}

BOSK_EXPORT int bosk_bubble_set_burst_level(bosk_bubble_t bubble, const char* level) {
  return answer(set_burst_level(bubble, level), __func__, of_bubble(bubble), of_level(level));
}

BOSK_EXPORT int bosk_bubble_set_affinity(bosk_bubble_t bubble, const char* level) {
  return answer(set_affinity(bubble, level), __func__, of_bubble(bubble), of_level(level));
}

BOSK_EXPORT int bosk_bubble_set_policy(bosk_bubble_t bubble, const char* policy) {
  topology::Error why;
  const int error = set_policy(bubble, policy, &why);
  return answer_because(error, __func__, why.text[0] != '\0' ? why.text : nullptr,
                        of_bubble(bubble), of_policy(policy));
}

BOSK_EXPORT int bosk_bubble_set_slice(bosk_bubble_t bubble, uint64_t nanoseconds) {
  return answer(set_slice(bubble, nanoseconds), __func__, of_bubble(bubble));
}

BOSK_EXPORT int bosk_bubble_get_slice(bosk_bubble_t bubble, uint64_t* nanoseconds) {
  return answer(get_slice(bubble, nanoseconds), __func__, of_bubble(bubble));
}

BOSK_EXPORT int bosk_bubble_set_relation(bosk_bubble_t bubble, int relation) {
  return answer(set_relation(bubble, relation), __func__, of_bubble(bubble));
}

BOSK_EXPORT int bosk_bubble_get_relation(bosk_bubble_t bubble, int* relation) {
  return answer(get_relation(bubble, relation), __func__, of_bubble(bubble));
}

BOSK_EXPORT int bosk_bubble_get_stats(bosk_bubble_t bubble, bosk_stats_t* stats) {
  return answer(bubble_stats(bubble, stats), __func__, of_bubble(bubble));
}
