// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each attribute of threads and bubbles has its effect. One worker (BOSK_WORKERS=1) where order matters.
#include "bosk_check.h"

#include <bosk/topology.h>
#include <pthread.h>
#include <stdint.h>

static int order[64];
static int ran;
static void* note(void* argument) {
  order[__atomic_fetch_add(&ran, 1, __ATOMIC_ACQ_REL)] = (int)(intptr_t)argument;
  return NULL;
}
static bosk_thread_attr_t defaults(void) {
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  return attr;
}
static void expect(const char* what, const int* wanted, int count) {
  CHECK(ran == count, "%s: %d of %d ran", what, ran, count);
  for (int i = 0; i < count; ++i)
    CHECK(order[i] == wanted[i], "%s: number %d was %d, not %d", what, i, order[i], wanted[i]);
  ran = 0;
}

// One after the other as they came; of higher priority first. Changed while they wait, too.
static void priorities(void) {
  bosk_thread_attr_t attr = defaults();
  bosk_thread_t thread[6];
  static const int32_t kPriority[6] = {0, 2, -1, 2, 7, 0};
  for (intptr_t i = 0; i < 6; ++i) {
    attr.priority = kPriority[i];
    OK(bosk_thread_create(&thread[i], &attr, note, (void*)i));
    int32_t told = -5;
    OK(bosk_thread_get_priority(thread[i], &told));
    CHECK(told == kPriority[i], "priority %d", told);
  }
  OK(bosk_thread_set_priority(thread[2], 3));
  OK(bosk_thread_set_priority(thread[1], -3));
  // The one that is joined goes before its equals, and has none below it.
  OK(bosk_thread_join(thread[1], NULL));
  expect("priorities", (const int[]){4, 2, 3, 0, 5, 1}, 6);
  for (int i = 0; i < 6; ++i)
    if (i != 1) OK(bosk_thread_join(thread[i], NULL));
}

// A more urgent thread goes on before an equal one when the running one yields, a less urgent one never.
static bosk_thread_t high;
static void* yield_once(void* argument) {
  bosk_thread_attr_t attr = defaults();
  note((void*)1);
  attr.priority = 4;
  OK(bosk_thread_create(&high, &attr, note, (void*)2));
  OK(bosk_thread_yield());
  note((void*)3);
  return argument;
}
static void yields(void) {
  bosk_thread_attr_t attr = defaults();
  bosk_thread_t thread[2];
  attr.priority = 3;
  OK(bosk_thread_create(&thread[0], &attr, yield_once, NULL));
  attr.priority = 2;
  OK(bosk_thread_create(&thread[1], &attr, note, (void*)4));
  OK(bosk_thread_join(thread[1], NULL));
  expect("yields", (const int[]){1, 2, 3, 4}, 4);
  OK(bosk_thread_join(thread[0], NULL));
  OK(bosk_thread_join(high, NULL));
}

// One that must not be interrupted is not, while it spins for much longer than a period; one that may be,
// is: it spins until another one has run.
static int flag;
static void* raise_flag(void* argument) {
  __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
  return argument;
}
static void* spin(void* argument) {
  const int preemptible = argument != NULL;
  bosk_thread_t other;
  OK(bosk_thread_create(&other, NULL, raise_flag, NULL));
  struct timespec begin;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE) &&
         (preemptible || now.tv_sec - begin.tv_sec < 1));
  CHECK(preemptible == __atomic_load_n(&flag, __ATOMIC_ACQUIRE), "preemptible %d: flag %d",
        preemptible, flag);
  OK(bosk_thread_join(other, NULL));
  return NULL;
}
static void preemption(void) {
  bosk_thread_attr_t attr = defaults();
  bosk_thread_t thread;
  attr.preemptible = 0;
  OK(bosk_thread_create(&thread, &attr, spin, NULL));
  OK(bosk_thread_join(thread, NULL));
  flag = 0;
  OK(bosk_thread_create(&thread, NULL, spin, &flag));
  OK(bosk_thread_join(thread, NULL));
}

// A light thread runs under the identity of the thread that joins it; another one never.
static void* who(void* argument) {
  *(pthread_t*)argument = pthread_self();
  return NULL;
}
static void* join_two(void* argument) {
  for (int light = 0; light <= 1; ++light) {
    bosk_thread_attr_t attr = defaults();
    attr.light = light;
    pthread_t there;
    bosk_thread_t thread;
    OK(bosk_thread_create(&thread, &attr, who, &there));
    OK(bosk_thread_join(thread, NULL));
    CHECK(pthread_equal(there, pthread_self()) == light, "light %d: the identity is %s", light,
          light ? "another" : "the same");
  }
  return argument;
}
static void light(void) {
  bosk_thread_t thread;
  OK(bosk_thread_create(&thread, NULL, join_two, NULL));
  OK(bosk_thread_join(thread, NULL));
}

// The level where it is put first, and the strength of affinity: who is bound to a processor runs on the
// worker of that one only. Wants BOSK_WORKERS of more than one and as many processors.
static void* stay(void* argument) {
  bosk_stats_t stats = {.size = sizeof stats};
  OK(bosk_thread_get_stats(bosk_thread_self(), &stats));
  const uint32_t first = stats.last_worker;
  if (argument != NULL)
    CHECK(first == *(uint32_t*)argument, "put on worker %u, ran on %u", *(uint32_t*)argument,
          first);
  for (int i = 0; i < 2000; ++i) {
    OK(bosk_thread_yield());
    OK(bosk_thread_get_stats(bosk_thread_self(), &stats));
    CHECK(stats.last_worker == first, "worker %u, then %u", first, stats.last_worker);
  }
  return NULL;
}
static void* put_beside(void* argument) {
  (void)argument;
  bosk_thread_attr_t attr = defaults();
  bosk_stats_t stats = {.size = sizeof stats};
  // So that the worker stays the same until it is asked.
  OK(bosk_thread_set_preemptible(bosk_thread_self(), 0));
  OK(bosk_thread_get_stats(bosk_thread_self(), &stats));
  attr.level = "pu";
  bosk_thread_t beside[8];
  for (int i = 0; i < 8; ++i) OK(bosk_thread_create(&beside[i], &attr, stay, &stats.last_worker));
  for (int i = 0; i < 8; ++i) OK(bosk_thread_join(beside[i], NULL));
  return NULL;
}
static void places(void) {
  bosk_thread_attr_t attr = defaults();
  bosk_thread_t thread[16];
  attr.affinity = "pu";
  for (int i = 0; i < 16; ++i)
    OK(bosk_thread_create(&thread[i], &attr, i < 8 ? stay : put_beside, NULL));
  for (int i = 0; i < 16; ++i) OK(bosk_thread_join(thread[i], NULL));
}

// ---- memory beside compute

enum { kPairs = 4 };
static int core_of[2 * kPairs];

static void* note_core(void* at) {
  const int level = bosk_topo_level("core");
  CHECK(level > 0, "level %d", level);
  *(int*)at = bosk_here_in(level);
  return NULL;
}

/// On cores of two processors each: one thread of either kind on each. In the order of insertion the kinds stand
/// so that two equal ones would meet if nobody had told.
static void demands(void) {
  bosk_thread_attr_t attr = defaults();
  bosk_thread_t thread[2 * kPairs];
  CHECK(bosk_topo_pus() == 2 * kPairs, "%d processors", bosk_topo_pus());
  attr.demand = 3;
  CHECK(bosk_thread_create(&thread[0], &attr, note_core, &core_of[0]) == BOSK_EINVAL, "demand 3");
  OK(bosk_bubble_create(&attr.bubble));
  OK(bosk_bubble_set_relation(attr.bubble, BOSK_RELATION_MEMORY_BESIDE_COMPUTE));
  for (int i = 0; i < 2 * kPairs; ++i) {
    attr.demand = i % 2 == 0 ? BOSK_DEMAND_MEMORY : BOSK_DEMAND_COMPUTE;
    OK(bosk_thread_create(&thread[i], &attr, note_core, &core_of[i]));
  }
  OK(bosk_bubble_wake(attr.bubble, NULL));
  for (int i = 0; i < 2 * kPairs; ++i) OK(bosk_thread_join(thread[i], NULL));
  OK(bosk_bubble_destroy(attr.bubble));
  int seen[2][kPairs] = {{0}};
  for (int i = 0; i < 2 * kPairs; ++i) {
    CHECK(core_of[i] >= 0 && core_of[i] < kPairs, "core %d", core_of[i]);
    ++seen[i % 2][core_of[i]];
  }
  for (int core = 0; core < kPairs; ++core)
    CHECK(seen[0][core] == 1 && seen[1][core] == 1, "core %d: %d and %d", core, seen[0][core],
          seen[1][core]);
}

static void names_and_loads(void) {
  bosk_thread_attr_t attr = defaults();
  char long_name[] = "a name of more than fifteen characters";
  attr.name = long_name;
  attr.asleep = 1;
  attr.load = 7;
  bosk_thread_t thread;
  OK(bosk_thread_create(&thread, &attr, note, NULL));
  memset(long_name, '-', sizeof long_name - 1);
  char name[64];
  OK(bosk_thread_get_name(thread, name, sizeof name));
  CHECK(strcmp(name, "a name of more ") == 0, "the name is '%s'", name);
  OK(bosk_thread_get_name(thread, name, 3));
  CHECK(strcmp(name, "a ") == 0, "the name is '%s'", name);
  uint32_t load = 0;
  OK(bosk_thread_get_load(thread, &load));
  CHECK(load == 7, "load %u", load);
  bosk_bubble_t bubble;
  bosk_bubble_t inner;
  OK(bosk_bubble_create(&bubble));
  OK(bosk_bubble_create(&inner));
  OK(bosk_bubble_insert_thread(inner, thread));
  OK(bosk_bubble_insert_bubble(bubble, inner));
  bosk_stats_t stats = {.size = sizeof stats};
  OK(bosk_bubble_get_stats(bubble, &stats));
  CHECK(stats.load == 7 && stats.threads == 1 && stats.bubbles == 1 && stats.not_started == 1 &&
            stats.running == 0,
        "load %lu, %u threads, %u bubbles, %u not started", (unsigned long)stats.load,
        stats.threads, stats.bubbles, stats.not_started);
  OK(bosk_thread_set_load(thread, 9));
  OK(bosk_bubble_get_stats(bubble, &stats));
  CHECK(stats.load == 9, "load %lu", (unsigned long)stats.load);
  OK(bosk_bubble_set_load(inner, 100));
  OK(bosk_bubble_get_stats(bubble, &stats));
  CHECK(stats.load == 100, "load %lu", (unsigned long)stats.load);
  // A caller of the first version has no room for more than that had.
  bosk_stats_t first = {.size = offsetof(bosk_stats_t, steals)};
  first.steals = first.steal_levels = 77;
  OK(bosk_bubble_get_stats(bubble, &first));
  CHECK(first.load == 100 && first.size == offsetof(bosk_stats_t, steals) && first.steals == 77 &&
            first.steal_levels == 77,
        "load %lu, size %zu, steals %u, levels %u", (unsigned long)first.load, first.size,
        first.steals, first.steal_levels);
  OK(bosk_bubble_set_priority(inner, 3));
  int32_t priority = 0;
  OK(bosk_bubble_get_priority(inner, &priority));
  CHECK(priority == 3, "priority %d", priority);
  OK(bosk_bubble_set_relation(inner, BOSK_RELATION_COLLECTIVE));
  int relation = 0;
  OK(bosk_bubble_get_relation(inner, &relation));
  CHECK(relation == BOSK_RELATION_COLLECTIVE, "relation %d", relation);
  OK(bosk_bubble_wake(bubble, NULL));
  OK(bosk_thread_join(thread, NULL));
  OK(bosk_bubble_get_stats(bubble, &stats));
  CHECK(stats.threads == 0, "%u threads", stats.threads);
  OK(bosk_bubble_destroy(inner));
  OK(bosk_bubble_destroy(bubble));
}

// Gangs by priorities (2005, figure 1): pairs whose bubbles are less urgent than their threads, and one
// communication thread that is more urgent than all. With one worker the pairs run one after the other,
// never mixed, and the communication thread goes first whenever it is ready.
static int messages;
static int in_pair = -1;
static void* send_message(void* argument) {
  __atomic_fetch_add(&messages, 1, __ATOMIC_RELAXED);
  __atomic_store_n((int*)argument, 1, __ATOMIC_RELEASE);
  return NULL;
}
static void* compute(void* argument) {
  const int pair = (int)(intptr_t)argument / 2;
  for (int i = 0; i < 20; ++i) {
    CHECK(in_pair == -1 || in_pair == pair, "pair %d runs while %d has not ended", pair, in_pair);
    in_pair = pair;
    bosk_thread_t communication;
    bosk_thread_attr_t attr = defaults();
    int sent = 0;
    attr.priority = 10;
    OK(bosk_thread_create(&communication, &attr, send_message, &sent));
    OK(bosk_thread_yield());
    CHECK(__atomic_load_n(&sent, __ATOMIC_ACQUIRE) == 1,
          "the communication thread did not go first");
    OK(bosk_thread_join(communication, NULL));
    OK(bosk_thread_yield());
  }
  bosk_bubble_t bubble;
  bosk_stats_t stats = {.size = sizeof stats};
  OK(bosk_thread_get_bubble(bosk_thread_self(), &bubble));
  OK(bosk_bubble_get_stats(bubble, &stats));
  if (stats.threads == 1) in_pair = -1;  // the last of the pair
  return NULL;
}
static void figure_1(void) {
  enum { kPairs = 6 };
  bosk_bubble_t all;
  bosk_bubble_t pair[kPairs];
  OK(bosk_bubble_create(&all));
  for (intptr_t i = 0; i < kPairs; ++i) {
    OK(bosk_bubble_create(&pair[i]));
    OK(bosk_bubble_set_priority(pair[i], 1));
    bosk_thread_attr_t attr = defaults();
    attr.bubble = pair[i];
    attr.priority = 2;
    attr.detached = 1;
    for (intptr_t j = 0; j < 2; ++j)
      OK(bosk_thread_create(NULL, &attr, compute, (void*)(2 * i + j)));
    OK(bosk_bubble_insert_bubble(all, pair[i]));
  }
  OK(bosk_bubble_set_burst_level(all, "machine"));
  OK(bosk_bubble_wake(all, NULL));
  OK(bosk_bubble_join(all));
  CHECK(messages == kPairs * 2 * 20, "%d messages", messages);
  for (int i = 0; i < kPairs; ++i) OK(bosk_bubble_destroy(pair[i]));
  OK(bosk_bubble_destroy(all));
}

// Two gangs: the threads of each are more urgent than the bubbles, so that the second comes out when those of
// the first have ended. They wait for it, and only the time slice of their bubble lets it out before.
static int second_gang_ran;
static void* wait_for_second_gang(void* unused) {
  while (!__atomic_load_n(&second_gang_ran, __ATOMIC_ACQUIRE)) continue;
  return unused;
}
static void* of_second_gang(void* unused) {
  __atomic_add_fetch(&second_gang_ran, 1, __ATOMIC_ACQ_REL);
  return unused;
}
static void run_two_gangs(int of_first, uint64_t slice_ns) {
  bosk_bubble_t gang[2];
  for (int g = 0; g < 2; ++g) {
    OK(bosk_bubble_create(&gang[g]));
    OK(bosk_bubble_set_priority(gang[g], 1));
    bosk_thread_attr_t attr = defaults();
    attr.bubble = gang[g];
    attr.priority = 2;
    attr.detached = 1;
    for (int i = 0; i < (g == 0 ? of_first : 2); ++i)
      OK(bosk_thread_create(NULL, &attr, g == 0 ? wait_for_second_gang : of_second_gang, NULL));
  }
  uint64_t slice = 1;
  OK(bosk_bubble_get_slice(gang[0], &slice));
  CHECK(slice == 0, "a new bubble has a time slice of %llu", (unsigned long long)slice);
  OK(bosk_bubble_set_slice(gang[0], slice_ns));
  OK(bosk_bubble_get_slice(gang[0], &slice));
  CHECK(slice == slice_ns, "a time slice of %llu", (unsigned long long)slice);
  for (int g = 0; g < 2; ++g) OK(bosk_bubble_wake(gang[g], "machine"));
  for (int g = 0; g < 2; ++g) {
    OK(bosk_bubble_join(gang[g]));
    OK(bosk_bubble_destroy(gang[g]));
  }
  CHECK(second_gang_ran == 2, "%d of the second gang", second_gang_ran);
}
static void slices(void) { run_two_gangs(2, 2000000); }
/// One thread, and nothing on a queue of its worker's: its ticks must go on until the slice is over, however many
/// find nothing to do.
static void long_slices(void) { run_two_gangs(1, 100000000); }
/// The same slices by policy: BOSK_POLICY=gang:TICKS.
static void policy_slices(void) { run_two_gangs(1, 0); }

int main(int argc, char** argv) {
  static const struct test kTests[] = {{"priorities", priorities},
                                       {"yields", yields},
                                       {"preemption", preemption},
                                       {"light", light},
                                       {"places", places},
                                       {"names", names_and_loads},
                                       {"figure-1", figure_1},
                                       {"slices", slices},
                                       {"demands", demands},
                                       {"long-slices", long_slices},
                                       {"policy-slices", policy_slices}};
  return RUN_TEST(argc, argv, kTests);
}
