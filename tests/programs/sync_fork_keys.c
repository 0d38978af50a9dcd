// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A child that is forked while another thread makes and deletes keys: it makes keys of its own, and those of its
// parent are there.
#include "children.h"

#include <bosk/sync.h>
#include <pthread.h>

// Many, so that whoever makes one looks at many places first.
enum { kKept = 1000, kChildren = 60 };

static bosk_key_t kept[kKept];
static int over;

static void* make_and_delete(void* ignored) {
  while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
    bosk_key_t key;
    CHECK(bosk_key_create(&key, NULL) == 0, "no key");
    CHECK(bosk_key_delete(key) == 0, "not deleted");
  }
  return ignored;
}

static void child(void) {
  arm_watchdog(50);
  bosk_key_t mine[8];
  for (int i = 0; i < 8; ++i) {
    CHECK(bosk_key_create(&mine[i], NULL) == 0, "no key %d in the child", i);
    CHECK(bosk_key_get(mine[i]) == NULL, "a new key has a value");
    CHECK(bosk_key_set(mine[i], &mine[i]) == 0, "no value in the child");
  }
  for (int i = 0; i < 8; ++i) {
    CHECK(bosk_key_get(mine[i]) == &mine[i], "another value than the child's own");
    CHECK(bosk_key_delete(mine[i]) == 0, "not deleted in the child");
  }
  for (int i = 0; i < kKept; ++i)
    CHECK(bosk_key_get(kept[i]) == &kept[i], "the parent's value %d is gone", i);
}

int main(void) {
  for (int i = 0; i < kKept; ++i) {
    CHECK(bosk_key_create(&kept[i], NULL) == 0, "no key %d", i);
    CHECK(bosk_key_set(kept[i], &kept[i]) == 0, "no value");
  }
  pthread_t maker;
  CHECK(pthread_create(&maker, NULL, make_and_delete, NULL) == 0, "no thread");
  for (int i = 0; i < kChildren; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      child();
      _exit(0);
    }
    wait_for_child(pid, 0, "a child");
  }
  __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
  pthread_join(maker, NULL);
  return passed();
}
