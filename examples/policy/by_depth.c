/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * OpenMP teams by how deep they are nested: a policy of one's own for bosk (docs/plugins.md).
 *
 *     by_depth.so:node-core    outermost teams    a member (or several in a row) for each node
 *                              teams inside       the same over the cores of the opener's node
 *                              deeper ones        together where their opener is at home
 *
 * A word for each depth: a level of the machine, over whose domains inside of the opener's home the
 * members are dealt, or `together`, as are teams that are deeper than there are words and those in whose
 * opener's home the level has no domain. Bubbles of the program's own burst.
 *
 * Cost: O(domains of the level) a team that is new or has changed. Memory: the words.
 */
#include <bosk/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTHS = 16, LONGEST_WORD = 15 };

struct by_depth {
  const struct bosk_policy_api* api;
  bosk_policy_host* host;
  uint32_t depths;
  uint32_t level[MOST_DEPTHS]; /* BOSK_POLICY_NONE: together */
};

/* The next word of "node-l3-core"; null: it is too long, or there is none. */
static const char* next_word(const char** text, char word[LONGEST_WORD + 1]) {
  const size_t length = strcspn(*text, "-");
  if (length == 0 || length > LONGEST_WORD) return NULL;
  memcpy(word, *text, length);
  word[length] = '\0';
  *text += length;
  if (**text == '-') ++*text;
  return word;
}

/* 0: `why` says what is wrong with the argument. */
static int read_levels(const struct bosk_policy_start* start, struct by_depth* policy, char* why,
                       size_t room) {
  const char* text = start->argument[0] != '\0' ? start->argument : "node";
  while (*text != '\0') {
    const char* at = text;
    char word[LONGEST_WORD + 1];
    if (policy->depths == MOST_DEPTHS || next_word(&text, word) == NULL) {
      snprintf(why, room, "\"%s\" are no levels, such as node-l3-core or node-together", at);
      return 0;
    }
    uint32_t level = BOSK_POLICY_NONE;
    if (strcmp(word, "together") != 0) {
      level = start->api->find_level(start->host, word);
      if (level == BOSK_POLICY_NONE) {
        snprintf(why, room,
                 "\"%s\" is not a level of this machine (see `bosk topo`), nor `together`", word);
        return 0;
      }
    }
    policy->level[policy->depths++] = level;
  }
  return 1;
}

static int check(const struct bosk_policy_start* start, char* why, size_t room) {
  struct by_depth policy = {0};
  return read_levels(start, &policy, why, room);
}

static int begin(const struct bosk_policy_start* start, void** state, char* why, size_t room) {
  struct by_depth* policy = calloc(1, sizeof *policy);
  if (policy == NULL) {
    snprintf(why, room, "out of memory");
    return 0;
  }
  policy->api = start->api;
  policy->host = start->host;
  *state = policy;
  return read_levels(start, policy, why, room);
}

static int is_inside(const struct by_depth* policy, uint32_t domain, uint32_t around) {
  while (domain != around && domain != BOSK_POLICY_NONE)
    domain = policy->api->parent(policy->host, domain);
  return domain == around;
}

static void submit_team(void* state, const struct bosk_policy_team* team,
                        bosk_policy_homes* homes) {
  const struct by_depth* policy = state;
  const struct bosk_policy_api* api = policy->api;
  const uint32_t level =
      team->depth < policy->depths ? policy->level[team->depth] : BOSK_POLICY_NONE;
  uint32_t first = 0;
  uint32_t count = 0;
  /* Domains of a level are neighbours, so those inside of another one are as well. */
  for (uint32_t i = 0; level != BOSK_POLICY_NONE && i < api->level_size(policy->host, level); ++i)
    if (is_inside(policy, api->level_domain(policy->host, level, i), team->opener_domain) &&
        count++ == 0)
      first = i;
  if (count == 0) {
    api->home_together(homes, team->opener_domain);
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t members = team->members;
    const uint32_t from = (uint32_t)(members * i / count);
    const uint32_t to = (uint32_t)(members * (i + 1) / count);
    api->home_next(homes, to - from, api->level_domain(policy->host, level, first + i));
  }
}

const struct bosk_policy bosk_policy_plugin = {
    BOSK_POLICY_HEADER,
    .name = "by_depth",
    .summary =
        "OpenMP teams by their depth: by_depth.so:node-core deals outermost ones over nodes, those inside over cores",
    .check = check,
    .start = begin,
    .stop = free,
    .submit_team = submit_team};
