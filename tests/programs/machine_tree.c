// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/tree.h: bubbles after the machine. machine_tree LEVEL LEAVES BUBBLES: so many leaves at that level and bubbles in all.
#include <bosk/sync.h>
#include <bosk/topology.h>
#include <bosk/tree.h>

#include "check.h"

enum { kPerLeaf = 6 };

static bosk_tree_t* tree;
static int level, ran;

static void* works(void* argument) {
  (void)argument;
  for (int i = 0; i < 20; i++) {
    const int here = bosk_here();
    CHECK(here >= 0 && here < bosk_topo_pus(), "on PU %d", here);
    const int domain = bosk_tree_leaf_of(tree, here);
    CHECK(domain == bosk_topo_domain_of(level, here), "PU %d looks like leaf %d", here, domain);
    bosk_thread_yield();
  }
  __atomic_add_fetch(&ran, 1, __ATOMIC_RELAXED);
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc > 3, "usage: machine_tree LEVEL LEAVES BUBBLES");
  CHECK(bosk_tree_create(NULL, NULL) == BOSK_EINVAL, "no place for the handle");
  CHECK(bosk_tree_create(&tree, "wurst") == BOSK_ENOENT, "a level wurst");
  CHECK(bosk_tree_destroy(NULL) == 0 && bosk_tree_leaves(NULL) == BOSK_EINVAL, "null");
  const int made = bosk_tree_create(&tree, argv[1]);
  CHECK(made == 0, "bosk_tree_create: %s", bosk_strerror(made));
  level = bosk_topo_level(argv[1]);
  const int leaves = bosk_tree_leaves(tree);
  CHECK(leaves == atoi(argv[2]), "%d leaves", leaves);
  CHECK(bosk_tree_leaf(tree, -1) == NULL && bosk_tree_leaf(tree, leaves) == NULL,
        "too many leaves");
  CHECK(bosk_tree_leaf_of(tree, bosk_topo_pus()) == BOSK_EINVAL, "a PU too many");
  bosk_stats_t stats = {.size = sizeof stats};
  CHECK(bosk_bubble_get_stats(bosk_tree_root(tree), &stats) == 0, "no statistics");
  CHECK((int)stats.bubbles + 1 == atoi(argv[3]), "%u bubbles in the root", stats.bubbles);
  for (int i = 0; i < leaves; i++) {
    // From each leaf outwards one comes to the root.
    bosk_bubble_t at = bosk_tree_leaf(tree, i), outer = at;
    while (outer != NULL) {
      at = outer;
      CHECK(bosk_bubble_get_bubble(at, &outer) == 0, "no bubble around");
    }
    CHECK(at == bosk_tree_root(tree), "leaf %d is elsewhere", i);
    for (int j = 0; j < kPerLeaf; j++) {
      bosk_thread_attr_t attr;
      bosk_thread_attr_init(&attr);
      attr.bubble = bosk_tree_leaf(tree, i);
      attr.detached = 1;
      CHECK(bosk_thread_create(NULL, &attr, works, (void*)(long)i) == 0, "bosk_thread_create");
    }
  }
  CHECK(bosk_tree_destroy(tree) == BOSK_EBUSY, "a tree with threads in it is destroyed");
  CHECK(bosk_tree_wake(tree) == 0, "wake");
  CHECK(bosk_tree_wake(tree) == BOSK_ESTATE, "woken twice");
  CHECK(bosk_tree_join(tree) == 0, "join");
  CHECK(ran == leaves * kPerLeaf, "%d threads ran", ran);
  CHECK(bosk_tree_destroy(tree) == 0, "destroy");
  return passed();
}
