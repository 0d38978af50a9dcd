/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What a test and the policy probe.c share: the test finds it by dlsym(). */
#ifndef PROBE_H
#define PROBE_H

#include <bosk/policy.h>

struct probe {
  /* How often each hook was called. */
  int check, start, stop, submit, submit_team, found, idle, tick, hint, done, steal, forked;
  /* What start() was given, and made. */
  const struct bosk_policy_api* api;
  bosk_policy_host* host;
  uint32_t top_level, bottom_level;
  int top_given;
  char argument[256];
  uint32_t holder;
  /* What hooks do; null: nothing. */
  int (*on_submit)(bosk_policy_work* work, uint32_t domain);
  void (*on_submit_team)(const struct bosk_policy_team* team, bosk_policy_homes* homes);
  struct bosk_policy_verdict (*on_found)(const struct bosk_policy_found* bubble);
  int idle_answer;
  int steal_answer;
  uint32_t regenerated_domain;
  /* What hooks were told last. */
  bosk_policy_entity hinted;
  uint64_t old_load, new_load, done_load;
  void* stopped; /* the state that stop() got */
  /* With the argument "thread": its own thread lets out what it keeps. */
  int has_thread;
  int ending;
  uint32_t let_out; /* by that thread alone */
};

#endif
