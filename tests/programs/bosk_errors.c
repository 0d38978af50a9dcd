// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the functions of bosk.h answer to nonsense: a code, never a crash.
#include "bosk_check.h"

static void* nothing(void* argument) { return argument; }

static int no_thread;  // an address that is no handle

static void handles(bosk_thread_t thread, bosk_bubble_t bubble) {
  void* result;
  int32_t priority;
  uint32_t load;
  int relation;
  char name[BOSK_NAME_LENGTH];
  bosk_bubble_t in;
  bosk_stats_t stats = {.size = sizeof stats};
  bosk_bubble_t good;
  OK(bosk_bubble_create(&good));
  FAILS(bosk_thread_wake(thread), BOSK_ESTALE);
  FAILS(bosk_thread_join(thread, &result), BOSK_ESTALE);
  FAILS(bosk_thread_detach(thread), BOSK_ESTALE);
  FAILS(bosk_thread_set_priority(thread, 1), BOSK_ESTALE);
  FAILS(bosk_thread_get_priority(thread, &priority), BOSK_ESTALE);
  FAILS(bosk_thread_set_load(thread, 1), BOSK_ESTALE);
  FAILS(bosk_thread_get_load(thread, &load), BOSK_ESTALE);
  FAILS(bosk_thread_set_preemptible(thread, 0), BOSK_ESTALE);
  FAILS(bosk_thread_get_name(thread, name, sizeof name), BOSK_ESTALE);
  FAILS(bosk_thread_get_bubble(thread, &in), BOSK_ESTALE);
  FAILS(bosk_thread_get_stats(thread, &stats), BOSK_ESTALE);
  FAILS(bosk_bubble_insert_thread(good, thread), BOSK_ESTALE);
  FAILS(bosk_bubble_remove_thread(thread), BOSK_ESTALE);
  FAILS(bosk_bubble_move_thread(good, thread), BOSK_ESTALE);
  FAILS(bosk_bubble_destroy(bubble), BOSK_ESTALE);
  FAILS(bosk_bubble_insert_bubble(good, bubble), BOSK_ESTALE);
  FAILS(bosk_bubble_insert_bubble(bubble, good), BOSK_ESTALE);
  FAILS(bosk_bubble_remove_bubble(bubble), BOSK_ESTALE);
  FAILS(bosk_bubble_wake(bubble, NULL), BOSK_ESTALE);
  FAILS(bosk_bubble_join(bubble), BOSK_ESTALE);
  FAILS(bosk_bubble_barrier(bubble, NULL), BOSK_ESTALE);
  FAILS(bosk_bubble_get_bubble(bubble, &in), BOSK_ESTALE);
  FAILS(bosk_bubble_set_priority(bubble, 1), BOSK_ESTALE);
  FAILS(bosk_bubble_get_priority(bubble, &priority), BOSK_ESTALE);
  FAILS(bosk_bubble_set_load(bubble, 1), BOSK_ESTALE);
  FAILS(bosk_bubble_get_load(bubble, &load), BOSK_ESTALE);
  FAILS(bosk_bubble_set_burst_level(bubble, "core"), BOSK_ESTALE);
  FAILS(bosk_bubble_set_affinity(bubble, "core"), BOSK_ESTALE);
  FAILS(bosk_bubble_set_policy(bubble, "spread"), BOSK_ESTALE);
  FAILS(bosk_bubble_set_slice(bubble, 1), BOSK_ESTALE);
  FAILS(bosk_bubble_set_relation(bubble, BOSK_RELATION_GANG), BOSK_ESTALE);
  FAILS(bosk_bubble_get_relation(bubble, &relation), BOSK_ESTALE);
  FAILS(bosk_bubble_get_stats(bubble, &stats), BOSK_ESTALE);
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.bubble = bubble;
  if (bubble != NULL) {
    bosk_thread_t made;
    FAILS(bosk_thread_create(&made, &attr, nothing, NULL), BOSK_ESTALE);
  }
  OK(bosk_bubble_destroy(good));
}

static void* join_itself(void* argument) {
  const bosk_thread_t me = bosk_thread_self();
  CHECK(me == *(bosk_thread_t*)argument, "another thread's handle");
  FAILS(bosk_thread_join(me, NULL), BOSK_EDEADLK);
  OK(bosk_thread_set_preemptible(me, 0));
  OK(bosk_thread_set_preemptible(me, 1));
  return NULL;
}

int main(void) {
  // Before anything else was called.
  FAILS(bosk_thread_join(NULL, NULL), BOSK_ESTALE);
  FAILS(bosk_bubble_wake(NULL, NULL), BOSK_ESTALE);
  CHECK(bosk_thread_self() == NULL, "main is a thread of the library's");
  OK(bosk_thread_yield());

  bosk_thread_attr_t attr;
  FAILS(bosk_thread_attr_init_sized(NULL, sizeof attr), BOSK_EINVAL);
  FAILS(bosk_thread_attr_init_sized(&attr, 3), BOSK_EINVAL);
  OK(bosk_thread_attr_init(&attr));
  bosk_thread_t thread;
  FAILS(bosk_thread_create(NULL, NULL, nothing, NULL), BOSK_EINVAL);
  FAILS(bosk_thread_create(&thread, NULL, NULL, NULL), BOSK_EINVAL);
  FAILS(bosk_bubble_create(NULL), BOSK_EINVAL);
  attr.size = 1;
  FAILS(bosk_thread_create(&thread, &attr, nothing, NULL), BOSK_EINVAL);
  attr.size = (size_t)-1;
  FAILS(bosk_thread_create(&thread, &attr, nothing, NULL), BOSK_EINVAL);
  OK(bosk_thread_attr_init(&attr));
  attr.level = "no such level";
  FAILS(bosk_thread_create(&thread, &attr, nothing, NULL), BOSK_ENOENT);
  attr.level = NULL;
  attr.affinity = "";
  FAILS(bosk_thread_create(&thread, &attr, nothing, NULL), BOSK_ENOENT);
  attr.affinity = NULL;
  attr.priority = INT32_MIN;
  FAILS(bosk_thread_create(&thread, &attr, nothing, NULL), BOSK_EINVAL);

  // What is newer than the library and not its default.
  struct {
    bosk_thread_attr_t known;
    uint64_t more;
  } newer = {.more = 0};
  OK(bosk_thread_attr_init(&newer.known));
  newer.known.size = sizeof newer;
  OK(bosk_thread_create(&thread, &newer.known, nothing, NULL));
  OK(bosk_thread_join(thread, NULL));
  newer.more = 1;
  FAILS(bosk_thread_create(&thread, &newer.known, nothing, NULL), BOSK_ENOTSUP);

  bosk_bubble_t bubble;
  OK(bosk_bubble_create(&bubble));
  OK(bosk_thread_attr_init(&attr));
  attr.asleep = 1;
  attr.bubble = bubble;
  FAILS(bosk_thread_create(&thread, &attr, nothing, NULL), BOSK_EINVAL);
  FAILS(bosk_bubble_wake(bubble, "no such level"), BOSK_ENOENT);
  FAILS(bosk_bubble_set_burst_level(bubble, "x"), BOSK_ENOENT);
  FAILS(bosk_bubble_set_affinity(bubble, "x"), BOSK_ENOENT);
  OK(bosk_bubble_set_affinity(bubble, "core"));
  OK(bosk_bubble_set_affinity(bubble, NULL));
  FAILS(bosk_bubble_set_policy(bubble, "wurst"), BOSK_ENOENT);
  FAILS(bosk_bubble_set_policy(bubble, "spread:many"), BOSK_ENOENT);
  FAILS(bosk_bubble_set_policy(bubble, "./there-is-none.so"), BOSK_ENOENT);
  FAILS(bosk_bubble_set_policy(bubble, "spread,burst@core"), BOSK_EINVAL);
  FAILS(bosk_bubble_set_policy(bubble, "burst@core"), BOSK_EINVAL);
  OK(bosk_bubble_set_policy(bubble, "spread:50"));
  OK(bosk_bubble_set_policy(bubble, NULL));
  FAILS(bosk_bubble_get_slice(bubble, NULL), BOSK_EINVAL);
  FAILS(bosk_bubble_set_relation(bubble, -1), BOSK_EINVAL);
  FAILS(bosk_bubble_set_relation(bubble, 7), BOSK_EINVAL);
  FAILS(bosk_bubble_set_priority(bubble, INT32_MIN), BOSK_EINVAL);
  FAILS(bosk_bubble_get_priority(bubble, NULL), BOSK_EINVAL);
  FAILS(bosk_bubble_get_load(bubble, NULL), BOSK_EINVAL);
  FAILS(bosk_bubble_get_relation(bubble, NULL), BOSK_EINVAL);
  FAILS(bosk_bubble_get_bubble(bubble, NULL), BOSK_EINVAL);
  FAILS(bosk_bubble_get_stats(bubble, NULL), BOSK_EINVAL);
  bosk_stats_t stats = {.size = 0};
  FAILS(bosk_bubble_get_stats(bubble, &stats), BOSK_EINVAL);

  // Handles: null, of the other kind, an address, used up.
  handles(NULL, NULL);
  handles((bosk_thread_t)bubble, (bosk_bubble_t)&no_thread);
  handles((bosk_thread_t)(uintptr_t)-1, (bosk_bubble_t)(uintptr_t)-2);
  handles((bosk_thread_t)(uintptr_t)0x400000001, (bosk_bubble_t)(uintptr_t)0x3fffffffe);
  OK(bosk_thread_create(&thread, NULL, join_itself, &thread));
  FAILS(bosk_thread_set_preemptible(thread, 0), BOSK_EPERM);
  OK(bosk_thread_join(thread, NULL));
  bosk_bubble_t old = bubble;
  OK(bosk_bubble_destroy(bubble));
  handles(thread, old);

  // Ended, not joined.
  OK(bosk_bubble_create(&bubble));
  OK(bosk_thread_attr_init(&attr));
  attr.bubble = bubble;
  OK(bosk_bubble_wake(bubble, NULL));
  OK(bosk_thread_create(&thread, &attr, nothing, &attr));
  OK(bosk_bubble_join(bubble));
  FAILS(bosk_thread_wake(thread), BOSK_ESTATE);
  FAILS(bosk_bubble_remove_thread(thread), BOSK_ESTATE);
  FAILS(bosk_bubble_insert_thread(bubble, thread), BOSK_ESTATE);
  char name[4];
  FAILS(bosk_thread_get_name(thread, name, 0), BOSK_EINVAL);
  FAILS(bosk_thread_get_name(thread, NULL, 4), BOSK_EINVAL);
  OK(bosk_thread_get_name(thread, name, 1));
  OK(bosk_bubble_destroy(bubble));
  void* result = NULL;
  OK(bosk_thread_join(thread, &result));
  CHECK(result == &attr, "result %p", result);

  for (int code = 10; code > -40; --code)
    CHECK(bosk_strerror(code) != NULL && bosk_strerror(code)[0] != '\0', "no text for %d", code);
  CHECK(strcmp(bosk_strerror(BOSK_EBUSY), bosk_strerror(BOSK_ESTALE)) != 0,
        "one text for two codes");
  return passed();
}
