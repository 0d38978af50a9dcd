// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members that make a blocking call beside members that compute or spin: see calls.c.
#pragma once

#include "hard.h"

#define MUST(condition) CHECK(condition, "%s: not so, errno %d", #condition, errno)

static double wait_s = .3;  // what each call waits at least; BOSK_TEST_WAIT_MS
static long wait_ms = 300;
static struct timespec wait_time = {0, 300000000};

struct call {
  const char* name;
  void (*make)(void);
  void (*prepare)(void);  // before the first region; then one member only makes the call
};

static int callers_left;

static void one_call(const struct call* call) {
  const double start = now();
  call->make();
  const double spent = now() - start;
  // The clocks of the kernel's sleeps and ours may be a tick apart.
  CHECK(spent >= wait_s - .005, "%s ended after %.0f ms", call->name, 1e3 * spent);
  __atomic_sub_fetch(&callers_left, 1, __ATOMIC_ACQ_REL);
}

static int hands_on, turn;

/// Member `me` of `all`: every second one calls, or only one; the others compute, or spin for the callers.
static void member(const struct call* call, int me, int all) {
  // They wait for each other by a flag first, some rounds with a little work: as those of pipelines do.
  if (hands_on) hand_round_working(&turn, me, all, all > 16 ? 1 : 4, .2);
  const int calls = call->prepare ? me == all - 1 : me % 2 == (all - 1) % 2;
  if (calls)
    one_call(call);
  else if (me % 4 < 2)
    while (__atomic_load_n(&callers_left, __ATOMIC_ACQUIRE) > 0) {
    }
  else
    while (__atomic_load_n(&callers_left, __ATOMIC_ACQUIRE) > 0) compute(20);
}

static int run_call(int argc, char** argv, const struct call* calls, size_t count) {
  const struct call* call = NULL;
  for (size_t i = 0; argc > 2 && i < count; ++i)
    if (is(argv[1], calls[i].name)) call = &calls[i];
  if (call == NULL) no_such_mode();
  const int nested = is(argv[2], "nested") || is(argv[2], "handing_nested");
  hands_on = is(argv[2], "handing") || is(argv[2], "handing_nested");
  int members = argc > 3 ? atoi(argv[3]) : omp_get_max_threads();
  if (nested) members = members > 3 ? members / 2 * 2 : 2;
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  const char* text = getenv("BOSK_TEST_WAIT_MS");
  if (text && atoi(text) > 0 && atoi(text) < 1000) {
    wait_ms = atoi(text);
    wait_s = 1e-3 * (double)wait_ms;
    wait_time.tv_nsec = wait_ms * 1000000;
  }
  if (call->prepare) call->prepare();
  callers_left = call->prepare ? 1 : (members + 1) / 2;
  if (nested) {
    const int inner = members / 2;
#pragma omp parallel num_threads(2)
    {
      const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(inner)
      member(call, outer * inner + omp_get_thread_num(), members);
    }
  } else {
#pragma omp parallel num_threads(members)
    member(call, omp_get_thread_num(), members);
  }
  CHECK(callers_left == 0, "%d calls did not end", callers_left);
  return passed();
}
