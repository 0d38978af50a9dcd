/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
   Bubbles after the machine's own tree (2005, section 5.2): one bubble for each domain of a level, inside of one for each
   domain around it, up to the machine. A program whose work is regular puts what belongs together into one leaf and
   need not know how many nodes, caches or cores there are.

   ```c
   bosk_tree_t *tree;
   bosk_tree_create(&tree, "node");
   for (int i = 0; i < stripes; i++)
     bosk_bubble_insert_thread(bosk_tree_leaf(tree, i * bosk_tree_leaves(tree) / stripes), thread[i]);
   bosk_tree_wake(tree);
   bosk_tree_join(tree);
   bosk_tree_destroy(tree);
   ```

   Each bubble bursts at the level that it stands for, so that what is in a leaf is shared by the processors of one such
   domain. It is the shape that is the machine's: which leaf comes to which domain is for the policy and idle
   processors to say. Functions may be called by any thread at any time; a tree must not be used while it is destroyed. Codes
   as in bosk/bosk.h. */
#ifndef BOSK_TREE_H
#define BOSK_TREE_H

#include <bosk/bosk.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bosk_tree bosk_tree_t;

/** Makes the bubbles, empty and asleep, down to the level ("node", "l3", "core", "llc" …; null: the NUMA nodes).
    BOSK_EINVAL: no place for the handle; BOSK_ENOENT: the machine has no such level; BOSK_ENOMEM; BOSK_ENOTSUP. */
int bosk_tree_create(bosk_tree_t** tree, const char* level);
/** Gives the bubbles back, and the tree. BOSK_EBUSY: there are threads or foreign bubbles in it; nothing is done then.
    Null is fine. */
int bosk_tree_destroy(bosk_tree_t* tree);

/** How many leaves there are: the domains of the level, from left to right. BOSK_EINVAL: null. */
int bosk_tree_leaves(const bosk_tree_t* tree);
/** Null if there is no such leaf. */
bosk_bubble_t bosk_tree_leaf(const bosk_tree_t* tree, int leaf);
/** The number of the domain of the leaves' level that the PU (bosk/topology.h) is in: the leaf that looks like it.
    BOSK_EINVAL. */
int bosk_tree_leaf_of(const bosk_tree_t* tree, int pu);
/** The bubble around all; the only leaf if the level divides nothing. */
bosk_bubble_t bosk_tree_root(const bosk_tree_t* tree);

/** As bosk_bubble_wake() of the root, on the whole machine. BOSK_ESTATE: it was woken already. */
int bosk_tree_wake(bosk_tree_t* tree);
/** As bosk_bubble_join() of the root: waits until all threads in the tree have ended. */
int bosk_tree_join(bosk_tree_t* tree);

#ifdef __cplusplus
}
#endif
#endif
