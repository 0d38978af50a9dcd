// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bubbles after the machine's own tree.
#include "threads/machine_tree.h"

#include <stdlib.h>

#include "threads/machine_queries.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

using topology::Domain;
using topology::Machine;

void free_tree(bosk_tree* tree) {
  if (tree == nullptr) return;
  free(tree->bubble);
  free(tree->leaf);
  free(tree);
}

/// Inner ones first, as far as they exist.
int destroy_bubbles(bosk_tree* tree) {
  while (tree->bubbles > 0) {
    if (const int error = destroy_bubble(tree->bubble[tree->bubbles - 1]); error != 0) return error;
    --tree->bubbles;
  }
  return 0;
}

/// One for the domain, inside of `outer` (null: none); it bursts there.
int add_bubble(bosk_tree* tree, const Domain& domain, bosk_bubble_t outer, bosk_bubble_t* made) {
  int error = create_bubble(made);
  if (error != 0) return error;
  tree->bubble[tree->bubbles++] = *made;
  if (outer != nullptr) error = insert_bubble(outer, *made);
  return error != 0 ? error : set_burst_level(*made, topology::kind_name(domain.kind));
}

/// The bubble of `domain`, and those of all domains around it, made where they are missing.
int bubble_for(bosk_tree* tree, bosk_bubble_t* of_domain, const Domain& domain) {
  // From the outermost that is missing inwards: without recursion, at most as many looks as there are depths twice.
  while (of_domain[domain.id] == nullptr) {
    const Domain* missing = &domain;
    while (missing->parent != nullptr && of_domain[missing->parent->id] == nullptr)
      missing = missing->parent;
    bosk_bubble_t outer = missing->parent != nullptr ? of_domain[missing->parent->id] : nullptr;
    if (const int error = add_bubble(tree, *missing, outer, &of_domain[missing->id]); error != 0)
      return error;
  }
  return 0;
}

int build(bosk_tree* tree, const Machine& machine, const topology::Level& level) {
  auto* of_domain = static_cast<bosk_bubble_t*>(calloc(machine.n_domains, sizeof(bosk_bubble_t)));
  tree->bubble = static_cast<bosk_bubble_t*>(calloc(machine.n_domains, sizeof(bosk_bubble_t)));
  tree->leaf = static_cast<bosk_bubble_t*>(calloc(level.n_domains, sizeof(bosk_bubble_t)));
  int error = of_domain != nullptr && tree->bubble != nullptr && tree->leaf != nullptr
                  ? 0
                  : static_cast<int>(BOSK_ENOMEM);
  for (uint32_t i = 0; error == 0 && i < level.n_domains; ++i) {
    const Domain& domain = machine.domain_array[level.domains[i]];
    error = bubble_for(tree, of_domain, domain);
    tree->leaf[tree->leaves++] = of_domain[domain.id];
  }
  free(of_domain);
  return error;
}

}  // namespace

int create_tree(bosk_tree** out, const char* name) {
  if (out == nullptr) return BOSK_EINVAL;
  const Machine* machine = machine_of_process();
  if (machine == nullptr) return BOSK_ENOMEM;
  const int level = level_by_name(*machine, name != nullptr ? name : "node");
  if (level < 0) return level;
  auto* tree = static_cast<bosk_tree*>(calloc(1, sizeof(bosk_tree)));
  if (tree == nullptr) return BOSK_ENOMEM;
  tree->level = level;
  if (const int error = build(tree, *machine, machine->level_array[level]); error != 0) {
    destroy_bubbles(tree);
    free_tree(tree);
    return error;
  }
  *out = tree;
  return 0;
}

int destroy_tree(bosk_tree* tree) {
  if (tree == nullptr) return 0;
  // All or nothing, as far as nobody changes it meanwhile: what is in it is counted first.
  bosk_stats_t stats{};
  stats.size = sizeof stats;
  if (const int error = bubble_stats(tree->bubble[0], &stats); error != 0) return error;
  if (stats.threads != 0 || stats.bubbles != static_cast<uint32_t>(tree->bubbles - 1))
    return BOSK_EBUSY;
  if (const int error = destroy_bubbles(tree); error != 0) return error;
  free_tree(tree);
  return 0;
}

}  // namespace bosk::threads
