/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A plug-in under which all nested teams are gangs: at home with their openers, or as a list, each member
 * by itself (WITH_LIST). */
#include <bosk/policy.h>

struct gangs {
  const struct bosk_policy_api* api;
  bosk_policy_host* host;
};
static struct gangs states[8];
static int made;

static int start(const struct bosk_policy_start* with, void** state, char* why, size_t room) {
  (void)why;
  (void)room;
  if (made == 8) return 0;
  states[made] = (struct gangs){with->api, with->host};
  *state = &states[made++];
  return 1;
}

static void submit_team(void* state, const struct bosk_policy_team* team,
                        bosk_policy_homes* homes) {
  const struct gangs* gangs = state;
  if (team->depth == 0) return;
  gangs->api->home_as_gang(homes, 1);
#ifdef WITH_LIST
  const uint32_t pus = gangs->api->n_pus(gangs->host);
  for (uint32_t i = 0; i < team->members; ++i)
    gangs->api->home_next(homes, 1,
                          gangs->api->domain_of_pu(gangs->host, (team->opener_pu + i) % pus));
#endif
}

const struct bosk_policy bosk_policy_plugin = {BOSK_POLICY_HEADER, .name = "gangs",
                                               .summary = "nested teams are gangs", .start = start,
                                               .submit_team = submit_team};
