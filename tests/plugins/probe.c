/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A policy that does what a test tells it through `struct probe`, and counts what it is asked. */
#include "probe.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#ifndef PROBE_NAME
#define PROBE_NAME "probe"
#endif

__attribute__((visibility("default"))) struct probe probe;

static sem_t more;
static pthread_t thread;

/* The hook that is left out of the table: a number of this list, given as PROBE_WITHOUT. */
enum {
  NO_HOOK,
  CHECK,
  START,
  STOP,
  SUBMIT,
  SUBMIT_TEAM,
  FOUND,
  IDLE,
  TICK,
  HINT,
  DONE,
  STEAL,
  FORKED
};
#ifndef PROBE_WITHOUT
#define PROBE_WITHOUT NO_HOOK
#endif
#define UNLESS_LEFT_OUT(number, hook) (PROBE_WITHOUT == (number) ? 0 : (hook))

#define COUNT(hook) (void)__atomic_add_fetch(&probe.hook, 1, __ATOMIC_RELAXED)

static int check(const struct bosk_policy_start* start, char* why, size_t room) {
  COUNT(check);
  if (strcmp(start->argument, "bad") != 0 && strcmp(start->argument, "silent") != 0) return 1;
  if (start->argument[0] == 'b') strncpy(why, "it wants\na good argument", room);
  return 0;
}

/* Lets out what is kept, whenever it is told that there may be something, until it shall end. */
static void* let_out(void* unused) {
  for (;;) {
    while (sem_wait(&more) != 0) {
    }
    if (__atomic_load_n(&probe.ending, __ATOMIC_ACQUIRE)) return unused;
    for (uint32_t child = 0; child < probe.api->n_children(probe.host, 0); ++child)
      probe.let_out +=
          probe.api->release(probe.host, probe.holder, 1, probe.api->child(probe.host, 0, child));
  }
}

static int start(const struct bosk_policy_start* start, void** state, char* why, size_t room) {
  COUNT(start);
  if (strcmp(start->argument, "fail") == 0) {
    strncpy(why, "no luck today", room);
    return 0;
  }
  probe.api = start->api;
  probe.host = start->host;
  probe.top_level = start->top_level;
  probe.bottom_level = start->bottom_level;
  probe.top_given = start->top_given;
  strncpy(probe.argument, start->argument, sizeof probe.argument - 1);
  probe.holder = start->api->make_holder(start->host);
  if (strcmp(start->argument, "thread") == 0) {
    probe.ending = 0;
    if (sem_init(&more, 0, 0) != 0 || pthread_create(&thread, NULL, let_out, NULL) != 0) return 0;
    probe.has_thread = 1;
  }
  *state = &probe;
  return 1;
}

static void stop(void* state) {
  COUNT(stop);
  probe.stopped = state;
  if (state != &probe) probe.stop = -1000;
  if (!probe.has_thread) return;
  __atomic_store_n(&probe.ending, 1, __ATOMIC_RELEASE);
  sem_post(&more);
  pthread_join(thread, NULL);
  probe.has_thread = 0;
}

static int submit(void* state, bosk_policy_work* work, uint32_t domain) {
  COUNT(submit);
  (void)state;
  return probe.on_submit != NULL ? probe.on_submit(work, domain) : 0;
}

static void submit_team(void* state, const struct bosk_policy_team* team,
                        bosk_policy_homes* homes) {
  COUNT(submit_team);
  (void)state;
  if (probe.on_submit_team != NULL) probe.on_submit_team(team, homes);
}

static struct bosk_policy_verdict found(void* state, const struct bosk_policy_found* bubble) {
  const struct bosk_policy_verdict burst = {BOSK_POLICY_BURST, BOSK_POLICY_NONE};
  const struct bosk_policy_verdict keep = {BOSK_POLICY_KEEP, probe.holder};
  COUNT(found);
  (void)state;
  if (probe.has_thread) {
    /* At the root only: what was let out lies below. */
    if (bubble->domain != 0) return burst;
    sem_post(&more);
    return keep;
  }
  return probe.on_found != NULL ? probe.on_found(bubble) : burst;
}

static int idle(void* state, uint32_t pu) {
  COUNT(idle);
  (void)state;
  (void)pu;
  if (probe.has_thread) sem_post(&more);
  return probe.idle_answer;
}

static int tick(void* state, const struct bosk_policy_found* bubble) {
  COUNT(tick);
  (void)state;
  return bubble->domain == probe.regenerated_domain;
}

static void hint(void* state, bosk_policy_entity entity, uint64_t old_load, uint64_t new_load) {
  COUNT(hint);
  (void)state;
  probe.hinted = entity;
  probe.old_load = old_load;
  probe.new_load = new_load;
}

static void done(void* state, bosk_policy_entity entity, uint32_t domain, uint64_t load) {
  COUNT(done);
  (void)state;
  (void)entity;
  (void)domain;
  (void)__atomic_add_fetch(&probe.done_load, load, __ATOMIC_RELAXED);
}

static int steal(void* state, uint32_t pu, struct bosk_policy_steal_rule* rule) {
  COUNT(steal);
  (void)state;
  (void)pu;
  (void)rule;
  return probe.steal_answer;
}

static void forked(void* state) {
  COUNT(forked);
  (void)state;
  if (!probe.has_thread) return;
  sem_init(&more, 0, 0);
  probe.has_thread = pthread_create(&thread, NULL, let_out, NULL) == 0;
}

const struct bosk_policy bosk_policy_plugin = {
    BOSK_POLICY_HEADER,
    .name = PROBE_NAME,
    .summary = "does what a test says",
    .check = UNLESS_LEFT_OUT(CHECK, check),
    .start = UNLESS_LEFT_OUT(START, start),
    .stop = UNLESS_LEFT_OUT(STOP, stop),
    .submit = UNLESS_LEFT_OUT(SUBMIT, submit),
    .submit_team = UNLESS_LEFT_OUT(SUBMIT_TEAM, submit_team),
    .found = UNLESS_LEFT_OUT(FOUND, found),
    .idle = UNLESS_LEFT_OUT(IDLE, idle),
    .tick = UNLESS_LEFT_OUT(TICK, tick),
    .hint = UNLESS_LEFT_OUT(HINT, hint),
    .done = UNLESS_LEFT_OUT(DONE, done),
    .steal = UNLESS_LEFT_OUT(STEAL, steal),
    .forked = UNLESS_LEFT_OUT(FORKED, forked),
};
