// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/tree.h.
#include "abi/bosk/answer.h"
#include "abi/gomp/export.h"
#include "threads/machine_queries.h"
#include "threads/machine_tree.h"
#include "threads/operations.h"

namespace threads = bosk::threads;

BOSK_EXPORT int bosk_tree_create(bosk_tree_t** tree, const char* level) {
  return threads::answer(threads::create_tree(tree, level), __func__, threads::of_level(level));
}
BOSK_EXPORT int bosk_tree_destroy(bosk_tree_t* tree) {
  return threads::answer(threads::destroy_tree(tree), __func__);
}
BOSK_EXPORT int bosk_tree_leaves(const bosk_tree_t* tree) {
  return threads::answer(tree != nullptr ? tree->leaves : static_cast<int>(BOSK_EINVAL), __func__);
}
BOSK_EXPORT bosk_bubble_t bosk_tree_leaf(const bosk_tree_t* tree, int leaf) {
  return tree != nullptr && leaf >= 0 && leaf < tree->leaves ? tree->leaf[leaf] : nullptr;
}
static int tree_leaf_of(const bosk_tree_t* tree, int pu) {
  const bosk::topology::Machine* machine = threads::machine_of_process();
  return tree != nullptr && machine != nullptr ? threads::domain_of_pu(*machine, tree->level, pu)
                                               : static_cast<int>(BOSK_EINVAL);
}
BOSK_EXPORT int bosk_tree_leaf_of(const bosk_tree_t* tree, int pu) {
  return threads::answer(tree_leaf_of(tree, pu), __func__);
}
BOSK_EXPORT bosk_bubble_t bosk_tree_root(const bosk_tree_t* tree) {
  return tree != nullptr ? tree->bubble[0] : nullptr;
}
BOSK_EXPORT int bosk_tree_wake(bosk_tree_t* tree) {
  return threads::answer(tree != nullptr ? threads::wake_bubble(tree->bubble[0], nullptr)
                                         : static_cast<int>(BOSK_EINVAL),
                         __func__);
}
BOSK_EXPORT int bosk_tree_join(bosk_tree_t* tree) {
  return threads::answer(
      tree != nullptr ? threads::join_bubble(tree->bubble[0]) : static_cast<int>(BOSK_EINVAL),
      __func__);
}
