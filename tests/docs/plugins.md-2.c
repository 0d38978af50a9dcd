// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The policy of docs/plugins.md that lets nothing be stolen.
#include <bosk/policy.h>

#include "block.inc"
#include "fragment.h"

const struct bosk_policy bosk_policy_plugin = {BOSK_POLICY_HEADER, .name = "stays", .steal = steal};

int main(void) {
  struct bosk_policy_steal_rule rule = {0};
  EXPECT(bosk_policy_plugin.steal(NULL, 0, &rule) == 0);
  return 0;
}
