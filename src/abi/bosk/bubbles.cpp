// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk_bubble_*: bubbles (include/bosk/bosk.h).
#include "abi/gomp/export.h"
#include "threads/operations.h"

using namespace bosk::threads;

BOSK_EXPORT int bosk_bubble_create(bosk_bubble_t* bubble) { return create_bubble(bubble); }

BOSK_EXPORT int bosk_bubble_destroy(bosk_bubble_t bubble) { return destroy_bubble(bubble); }

BOSK_EXPORT int bosk_bubble_insert_thread(bosk_bubble_t bubble, bosk_thread_t thread) {
  return insert_thread(bubble, thread);
}

BOSK_EXPORT int bosk_bubble_insert_bubble(bosk_bubble_t outer, bosk_bubble_t inner) {
  return insert_bubble(outer, inner);
}

BOSK_EXPORT int bosk_bubble_remove_thread(bosk_thread_t thread) { return remove_thread(thread); }

BOSK_EXPORT int bosk_bubble_remove_bubble(bosk_bubble_t inner) { return remove_bubble(inner); }

BOSK_EXPORT int bosk_bubble_move_thread(bosk_bubble_t to, bosk_thread_t thread) {
  return move_thread(to, thread);
}

BOSK_EXPORT int bosk_bubble_wake(bosk_bubble_t bubble, const char* level) {
  return wake_bubble(bubble, level);
}

BOSK_EXPORT int bosk_bubble_join(bosk_bubble_t bubble) { return join_bubble(bubble); }

BOSK_EXPORT int bosk_bubble_barrier(bosk_bubble_t bubble, int* serial) {
  return bubble_barrier(bubble, serial);
}

BOSK_EXPORT int bosk_bubble_get_bubble(bosk_bubble_t bubble, bosk_bubble_t* outer) {
  return get_bubble_bubble(bubble, outer);
}

BOSK_EXPORT int bosk_bubble_set_priority(bosk_bubble_t bubble, int32_t priority) {
  return set_bubble_priority(bubble, priority);
}

BOSK_EXPORT int bosk_bubble_get_priority(bosk_bubble_t bubble, int32_t* priority) {
  return get_bubble_priority(bubble, priority);
}

BOSK_EXPORT int bosk_bubble_set_load(bosk_bubble_t bubble, uint32_t load) {
  return set_bubble_load(bubble, load);
}

BOSK_EXPORT int bosk_bubble_get_load(bosk_bubble_t bubble, uint32_t* load) {
  return get_bubble_load(bubble, load);
}

BOSK_EXPORT int bosk_bubble_set_burst_level(bosk_bubble_t bubble, const char* level) {
  return set_burst_level(bubble, level);
}

BOSK_EXPORT int bosk_bubble_set_policy(bosk_bubble_t bubble, const char* policy) {
  return set_policy(bubble, policy);
}

BOSK_EXPORT int bosk_bubble_set_slice(bosk_bubble_t bubble, uint64_t nanoseconds) {
  return set_slice(bubble, nanoseconds);
}

BOSK_EXPORT int bosk_bubble_get_slice(bosk_bubble_t bubble, uint64_t* nanoseconds) {
  return get_slice(bubble, nanoseconds);
}

BOSK_EXPORT int bosk_bubble_set_relation(bosk_bubble_t bubble, int relation) {
  return set_relation(bubble, relation);
}

BOSK_EXPORT int bosk_bubble_get_relation(bosk_bubble_t bubble, int* relation) {
  return get_relation(bubble, relation);
}

BOSK_EXPORT int bosk_bubble_get_stats(bosk_bubble_t bubble, bosk_stats_t* stats) {
  return bubble_stats(bubble, stats);
}
