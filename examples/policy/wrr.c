/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Weighted round robin: a policy of one's own for bosk (docs/plugins.md).
 *
 *     machine      A B C D E F            wrr.so:3-1
 *     node 0 | 1   A B C E F | D
 *
 * At its level, and above it, what is in a bubble goes to the children of the domain in turn, as
 * many in a row to each as its weight says; without weights, one for each PU below the child. What
 * has arrived below that level bursts. Members of a team are dealt in the same way, and the teams
 * that they open stay together in their home.
 *
 * Cost: O(members) a bubble, O(children) to find whose turn it is. Memory: 4 bytes a domain.
 */
#include <bosk/policy.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_WEIGHTS = 64 };

struct weights {
  uint32_t count;
  uint32_t of[MOST_WEIGHTS];
};

struct wrr {
  const struct bosk_policy_api* api;
  bosk_policy_host* host;
  uint32_t level;
  struct weights weights;
  uint32_t* turn; /* per domain: how many it has dealt; atomic, for hooks run on many workers */
};

/* "3-1-2": numbers with dashes between, not all 0. */
static int read_weights(const char* text, struct weights* weights) {
  unsigned long sum = 0;
  for (weights->count = 0; *text != '\0'; ++weights->count) {
    char* end;
    const unsigned long weight = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || weight > 1000 || weights->count == MOST_WEIGHTS) return 0;
    if (*end != '\0' && (*end != '-' || end[1] == '\0')) return 0;
    weights->of[weights->count] = (uint32_t)weight;
    sum += weight;
    text = *end == '-' ? end + 1 : end;
  }
  return weights->count == 0 || sum != 0;
}

static int wrr_check(const struct bosk_policy_start* start, char* why, size_t room) {
  struct weights weights;
  if (read_weights(start->argument, &weights)) return 1;
  snprintf(why, room, "\"%s\" are no weights, such as 3-1-2", start->argument);
  return 0;
}

static int wrr_start(const struct bosk_policy_start* start, void** state, char* why, size_t room) {
  struct wrr* wrr = calloc(1, sizeof *wrr);
  if (wrr != NULL) wrr->turn = calloc(start->api->n_domains(start->host), sizeof *wrr->turn);
  if (wrr == NULL || wrr->turn == NULL) {
    free(wrr);
    snprintf(why, room, "out of memory");
    return 0;
  }
  wrr->api = start->api;
  wrr->host = start->host;
  wrr->level = start->top_level;
  read_weights(start->argument, &wrr->weights);
  *state = wrr;
  return 1;
}

static void wrr_stop(void* state) {
  struct wrr* wrr = state;
  free(wrr->turn);
  free(wrr);
}

/* Does it deal there, or has what is there arrived? */
static int deals(const struct wrr* wrr, uint32_t domain) {
  const struct bosk_policy_api* api = wrr->api;
  const uint32_t pu = api->first_pu(wrr->host, domain);
  const uint32_t mine = api->level_domain_of_pu(wrr->host, wrr->level, pu);
  return api->n_children(wrr->host, domain) != 0 &&
         api->depth(wrr->host, domain) <= api->depth(wrr->host, mine);
}

static uint32_t weight_of(const struct wrr* wrr, uint32_t domain, uint32_t child) {
  if (child < wrr->weights.count) return wrr->weights.of[child];
  if (wrr->weights.count != 0) return 1;
  return wrr->api->pus_below(wrr->host, wrr->api->child(wrr->host, domain, child));
}

/* The child whose turn is number `turn`; `left`: how many in a row are its own from there on. */
static uint32_t child_at(const struct wrr* wrr, uint32_t domain, uint32_t turn, uint32_t* left) {
  const uint32_t children = wrr->api->n_children(wrr->host, domain);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < children; ++i) sum += weight_of(wrr, domain, i);
  /* Weights of children that this machine lacks may be the only ones that are not 0. */
  uint32_t at = sum != 0 ? turn % sum : 0;
  uint32_t i = 0;
  while (sum != 0 && at >= weight_of(wrr, domain, i)) at -= weight_of(wrr, domain, i++);
  *left = sum != 0 ? weight_of(wrr, domain, i) - at : 1;
  return wrr->api->child(wrr->host, domain, i);
}

static struct bosk_policy_verdict wrr_found(void* state, const struct bosk_policy_found* bubble) {
  struct bosk_policy_verdict verdict = {BOSK_POLICY_BURST, BOSK_POLICY_NONE};
  if (bubble->members != 0 && deals(state, bubble->domain)) verdict.action = BOSK_POLICY_DISTRIBUTE;
  return verdict;
}

static int wrr_submit(void* state, bosk_policy_work* work, uint32_t domain) {
  const struct wrr* wrr = state;
  const uint32_t members = wrr->api->children_of(work, 0);
  uint32_t turn = __atomic_fetch_add(&wrr->turn[domain], members, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < members; ++i) {
    uint32_t left;
    const uint32_t child = child_at(wrr, domain, turn++, &left);
    if (!wrr->api->place(work, wrr->api->child_of(work, 0, i), child)) return 0;
  }
  return 1;
}

static void wrr_submit_team(void* state, const struct bosk_policy_team* team,
                            bosk_policy_homes* homes) {
  const struct wrr* wrr = state;
  if (!deals(wrr, team->opener_domain)) {
    wrr->api->home_together(homes, team->opener_domain);
    return;
  }
  for (uint32_t at = 0, left; at < team->members; at += left) {
    const uint32_t child = child_at(wrr, team->opener_domain, at, &left);
    if (left > team->members - at) left = team->members - at;
    wrr->api->home_next(homes, left, child);
  }
}

const struct bosk_policy bosk_policy_plugin = {
    BOSK_POLICY_HEADER,
    .name = "wrr",
    .summary = "weighted round robin over the children of a domain; wrr.so:3-1 gives the weights",
    .check = wrr_check,
    .start = wrr_start,
    .stop = wrr_stop,
    .submit = wrr_submit,
    .submit_team = wrr_submit_team,
    .found = wrr_found};
