// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stripes in the leaves of a tree, bosk/tree.h: each has run, in the leaf that it was put into.
#include <bosk/tree.h>

#include "fragment.h"

enum { STRIPES = 6 };

static bosk_bubble_t leaf_of[STRIPES];

static void* work(void* argument) {
  bosk_thread_get_bubble(bosk_thread_self(), argument);
  return NULL;
}

int main(void) {
  const int stripes = STRIPES;
  bosk_thread_t thread[STRIPES];
  bosk_thread_attr_t attr;
  bosk_thread_attr_init(&attr);
  attr.asleep = 1;
  attr.detached = 1;
  for (int i = 0; i < STRIPES; i++)
    EXPECT(bosk_thread_create(&thread[i], &attr, work, &leaf_of[i]) == 0);
#include "block.inc"
  for (int i = 0; i < STRIPES; i++) EXPECT(leaf_of[i] != 0);
  return 0;
}
