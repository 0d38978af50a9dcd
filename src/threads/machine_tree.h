// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bubbles after the machine's own tree: bosk/tree.h.
#pragma once

#include <bosk/tree.h>

/// The bubbles, outer ones before those inside of them, and which of them are leaves.
struct bosk_tree {
  int level;
  int bubbles;
  int leaves;
  bosk_bubble_t* bubble;
  bosk_bubble_t* leaf;
};

namespace bosk::threads {

int create_tree(bosk_tree** tree, const char* level);
int destroy_tree(bosk_tree* tree);

}  // namespace bosk::threads
