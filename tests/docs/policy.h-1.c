// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table that bosk/policy.h shows.
#include <bosk/policy.h>
#include <string.h>

#include "fragment.h"

static int my_submit(void* state, bosk_policy_work* work, uint32_t domain) { return 0; }

#include "block.inc"

int main(void) {
  EXPECT(bosk_policy_plugin.size == sizeof bosk_policy_plugin);
  EXPECT(strcmp(bosk_policy_plugin.name, "mine") == 0);
  EXPECT(bosk_policy_plugin.submit == my_submit);
  return 0;
}
