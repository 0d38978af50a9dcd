// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The policy of one's own that docs/plugins.md and bosk/policy.h show and compile.
#include <bosk/policy.h>

__attribute__((unused)) static int my_submit(void* state, bosk_policy_work* work, uint32_t domain) {
  (void)state, (void)work, (void)domain;
  return 0;
}

#include "block-1.inc"
