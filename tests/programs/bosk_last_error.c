// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk_last_error(): what the caller's last call that failed was about.
#include "bosk_check.h"

#include <bosk/memory.h>
#include <bosk/memory_costs.h>
#include <bosk/topology.h>
#include <bosk/tree.h>
#include <pthread.h>
#include <sys/mman.h>

enum { PAGE = 4096, ROOM = 600 };

static const char* said(void) {
  static _Thread_local char text[ROOM];
  const int length = bosk_last_error(text, sizeof text);
  CHECK(length == (int)strlen(text), "%d characters: %s", length, text);
  CHECK(strchr(text, '\n') == NULL, "more than a line: %s", text);
  return text;
}

/// The call fails with the code, and the line begins with its name and has both texts in it.
#define SAYS(call, code, first, second)                                                           \
  do {                                                                                            \
    FAILS(call, code);                                                                            \
    const char* text_ = said();                                                                   \
    CHECK(strncmp(text_, #call, strcspn(#call, "(")) == 0, "%s: another call: %s", #call, text_); \
    CHECK(strstr(text_, first) != NULL, "%s: no %s: %s", #call, first, text_);                    \
    CHECK(strstr(text_, second) != NULL, "%s: no %s: %s", #call, second, text_);                  \
  } while (0)

static const char* hex(const void* handle) {
  static _Thread_local char text[4][24];
  static _Thread_local int turn;
  char* mine = text[turn = (turn + 1) % 4];
  snprintf(mine, sizeof text[0], "%#lx", (unsigned long)(uintptr_t)handle);
  return mine;
}

static void* nothing(void* argument) { return argument; }

static void levels_and_policies(void) {
  char before[ROOM];
  CHECK(bosk_last_error(before, sizeof before) == 0 && before[0] == '\0', "before all: %s", before);
  FAILS(bosk_last_error(NULL, 5), BOSK_EINVAL);
  FAILS(bosk_last_error(before, 0), BOSK_EINVAL);

  bosk_bubble_t bubble;
  OK(bosk_bubble_create(&bubble));
  SAYS(bosk_bubble_wake(bubble, "wurst"), BOSK_ENOENT, "level \"wurst\"", hex(bubble));
  SAYS(bosk_bubble_set_burst_level(bubble, "shelf"), BOSK_ENOENT, "\"shelf\"", "nothing of that");
  SAYS(bosk_bubble_set_burst_level(bubble, "two\nlines"), BOSK_ENOENT, "\"two lines\"", "level");
  SAYS(bosk_bubble_set_policy(bubble, "sausage"), BOSK_ENOENT, "policy \"sausage\"", "spread");
  SAYS(bosk_bubble_set_policy(bubble, "burst:nowhere"), BOSK_ENOENT, "nowhere", "burst");
  SAYS(bosk_bubble_set_policy(bubble, "spread,cache@node"), BOSK_EINVAL, "cache", "one policy");
  SAYS(bosk_bubble_destroy(NULL), BOSK_ESTALE, "bubble null", "does not exist");
  bosk_thread_t thread;
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.level = "node";
  attr.affinity = "drawer";
  SAYS(bosk_thread_create(&thread, &attr, nothing, NULL), BOSK_ENOENT, "\"drawer\"", "affinity");
  SAYS(bosk_topo_level("crate"), BOSK_ENOENT, "level \"crate\"", "");
  bosk_tree_t* tree;
  SAYS(bosk_tree_create(&tree, "plank"), BOSK_ENOENT, "level \"plank\"", "");
  // What succeeds leaves the line.
  OK(bosk_bubble_destroy(bubble));
  CHECK(strstr(said(), "plank") != NULL, "%s", said());
  SAYS(bosk_bubble_join(bubble), BOSK_ESTALE, hex(bubble), "");
  // Cut, with the length of the whole.
  char small[10];
  const int whole = bosk_last_error(small, sizeof small);
  CHECK(whole == (int)strlen(said()) && strlen(small) == 9 && strncmp(small, said(), 9) == 0,
        "%d, %s", whole, small);
  // However long what is named is.
  static char name[5000];
  memset(name, 'x', sizeof name - 1);
  SAYS(bosk_topo_level(name), BOSK_ENOENT, "level \"xxx", "");
}

static void memory(void) {
  static char bytes[4 * PAGE] __attribute__((aligned(PAGE)));
  bosk_thread_t none = NULL;
  SAYS(bosk_mem_attach_thread(bytes, none, BOSK_MEM_READS, 1), BOSK_ENOAREA, hex(bytes), "no area");
  OK(bosk_mem_register(bytes, sizeof bytes));
  SAYS(bosk_mem_register(bytes + PAGE, PAGE), BOSK_EOVERLAP, "address", hex(bytes + PAGE));
  const int node = bosk_topo_nodes() + 4;
  char number[24];
  snprintf(number, sizeof number, "node %d", node);
  SAYS(bosk_mem_migrate(bytes, node, NULL), BOSK_ENODE, number, hex(bytes));
  SAYS(bosk_mem_migrate(bytes, -1, NULL), BOSK_ENODE, "node -1", "NUMA");
  SAYS(bosk_cost_for_read(0, node, 5), BOSK_EINVAL, number, "node 0");
  bosk_mem_attr_t attr;
  OK(bosk_mem_attr_init(&attr));
  attr.policy = BOSK_MEM_ON_NODE;
  attr.node = (uint32_t)node;
  void* block;
  SAYS(bosk_mem_alloc(&block, 5, &attr), BOSK_ENODE, number, "");
  SAYS(bosk_free(bytes + 8), BOSK_ENOAREA, hex(bytes + 8), "");
  OK(bosk_mem_unregister(bytes));

  // Locked memory is not marked, and it is said why.
  char* locked = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(locked != MAP_FAILED, "mmap");
  if (mlock(locked, 4 * PAGE) == 0) {
    OK(bosk_mem_register(locked, 4 * PAGE));
    const int marked = bosk_mem_next_touch(locked, 0, 0);
    if (bosk_topo_is_real()) {
      CHECK(marked == BOSK_ENOTSUP, "%s", bosk_strerror(marked));
      CHECK(strstr(said(), "is locked") != NULL && strstr(said(), hex(locked)) != NULL, "%s",
            said());
    }
    OK(bosk_mem_unregister(locked));
  }
  munmap(locked, 4 * PAGE);
}

/// Each thread has a line of its own, of whatever kind it is and wherever it runs.
static void* fail_in_turn(void* argument) {
  char name[32];
  char wanted[40];
  snprintf(name, sizeof name, "level-of-%d", *(int*)argument);
  snprintf(wanted, sizeof wanted, "\"%s\"", name);
  int told = 0;
  for (int i = 0; i < 200; ++i) {
    FAILS(bosk_topo_level(name), BOSK_ENOENT);
    bosk_thread_yield();
    char text[ROOM];
    // With many threads it may be lost, but it never is another one's.
    if (bosk_last_error(text, sizeof text) == 0) continue;
    CHECK(strstr(text, wanted) != NULL, "%s: %s", wanted, text);
    ++told;
  }
  CHECK(told > 0, "never told");
  return NULL;
}
static void threads(void) {
  enum { COUNT = 20 };
  int number[3 * COUNT];
  bosk_thread_t mine[COUNT];
  bosk_thread_t light[COUNT];
  pthread_t pthread[COUNT];
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.light = 1;
  FAILS(bosk_topo_level("of-main"), BOSK_ENOENT);
  for (int i = 0; i < 3 * COUNT; ++i) number[i] = i;
  for (int i = 0; i < COUNT; ++i) {
    OK(bosk_thread_create(&mine[i], NULL, fail_in_turn, &number[3 * i]));
    OK(bosk_thread_create(&light[i], &attr, fail_in_turn, &number[3 * i + 1]));
    CHECK(pthread_create(&pthread[i], NULL, fail_in_turn, &number[3 * i + 2]) == 0, "pthread");
  }
  for (int i = 0; i < COUNT; ++i) {
    OK(bosk_thread_join(mine[i], NULL));
    OK(bosk_thread_join(light[i], NULL));
    pthread_join(pthread[i], NULL);
  }
  char text[ROOM];
  CHECK(bosk_last_error(text, sizeof text) == 0 || strstr(text, "of-main") != NULL, "%s", text);
}

int main(int argc, char** argv) {
  const struct test tests[] = {
      {"names", levels_and_policies}, {"memory", memory}, {"threads", threads}};
  return RUN_TEST(argc, argv, tests);
}
