// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The first policy of docs/plugins.md: what is in a bubble is dealt to the children of its domain, one by one.
#include "block.inc"

#include <string.h>

#include "fragment.h"

enum { THREADS = 5, NODES = 2, FIRST_NODE = 10, DOMAIN = 3 };

static uint32_t placed[THREADS];

static uint32_t children_of(const bosk_policy_work* work, uint32_t entity) { return THREADS; }
static uint32_t child_of(const bosk_policy_work* work, uint32_t entity, uint32_t i) { return i; }
static uint32_t n_children(bosk_policy_host* at, uint32_t domain) { return NODES; }
static uint32_t child(bosk_policy_host* at, uint32_t domain, uint32_t i) {
  return domain == DOMAIN && i < NODES ? FIRST_NODE + i : BOSK_POLICY_NONE;
}
static int place(bosk_policy_work* work, uint32_t entity, uint32_t domain) {
  placed[entity] = domain;
  return 1;
}

int main(void) {
  const struct bosk_policy_api calls = {.children_of = children_of,
                                        .child_of = child_of,
                                        .n_children = n_children,
                                        .child = child,
                                        .place = place};
  const struct bosk_policy_start at = {.api = &calls};
  EXPECT(strcmp(bosk_policy_plugin.name, "deal") == 0);
  EXPECT(bosk_policy_plugin.start(&at, NULL, NULL, 0) == 1);
  EXPECT(bosk_policy_plugin.submit(NULL, NULL, DOMAIN) == 1);
  for (uint32_t i = 0; i < THREADS; i++) EXPECT(placed[i] == FIRST_NODE + i % NODES);
  return 0;
}
