// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What GCC's trunk calls and Debian's GCC 12 does not know, called as that compiler would: barriers that say
// what they are for, static loops and distribute through one question, masked, and the routines of
// OpenMP 6.0 and 6.1. The names are looked up in their version nodes.
#include "../programs/check.h"

#include <dlfcn.h>
#include <limits.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>

#define FIND(pointer, name, node)                         \
  do {                                                    \
    *(void**)&pointer = dlvsym(RTLD_DEFAULT, name, node); \
    CHECK(pointer != NULL, "no %s@%s", name, node);       \
  } while (0)
#define EQUAL(found, expected)                                                      \
  do {                                                                              \
    const long found_ = (long)(found), expected_ = (long)(expected);                \
    CHECK(found_ == expected_, "%s is %ld and not %ld", #found, found_, expected_); \
  } while (0)

static void (*barrier_ext)(int);
static bool (*barrier_cancel_ext)(int);
static bool (*cancel_construct)(int, bool);
static bool (*has_masked_thread_num)(int);
static bool (*has_masked_thread_num_with_end)(int);
static void (*masked_end)(void);
static _Complex int (*loop_static)(unsigned long long);
static _Complex int (*loop_static_start)(unsigned long long);
static void (*loop_static_dispatch)(unsigned long long, unsigned long long);
static void (*loop_static_end)(void);
static _Complex int (*distribute_static)(unsigned long long);
static _Complex int (*distribute_static_start)(unsigned long long);
static void (*distribute_static_dispatch)(unsigned long long, unsigned long long);
static void (*distribute_static_end)(void);

enum { kLength = 1000, kThreads = 4, kRounds = 200 };
static int hits[kLength];

/// The block of a thread or team, as the compiled code computes it.
static void run_block(_Complex int who) {
  const int count = __real__ who, number = __imag__ who;
  const int size = kLength / count, larger = kLength % count;
  const int first = number * size + (number < larger ? number : larger);
  const int end = first + size + (number < larger ? 1 : 0);
  for (int i = first; i < end; ++i) hits[i]++;
}

static void expect_hits(int expected) {
  for (int i = 0; i < kLength; ++i)
    CHECK(hits[i] == expected, "iteration %d ran %d times, not %d", i, hits[i], expected);
}

static void loops(void) {
  int arrived = 0;
  memset(hits, 0, sizeof hits);
#pragma omp parallel num_threads(kThreads)
  for (int round = 0; round < kRounds; ++round) {
    run_block(loop_static(kLength));
    barrier_ext(1);
    if (round % 50 == 0 && has_masked_thread_num(1)) expect_hits(2 * round + 1);
    barrier_ext(2);
    run_block(loop_static_start(kLength));
    loop_static_dispatch(0, 1);
    loop_static_end();
#pragma omp atomic
    arrived++;
    CHECK(!barrier_cancel_ext(1), "cancelled");
    CHECK(arrived >= kThreads * (round + 1), "%d have arrived in round %d", arrived, round);
  }
  expect_hits(2 * kRounds);
  // Outside of all regions: one thread.
  memset(hits, 0, sizeof hits);
  run_block(loop_static(kLength));
  barrier_ext(0);
  CHECK(!barrier_cancel_ext(2), "cancelled");
  expect_hits(1);
}

/// A barrier is where tasks are done.
static void tasks(void) {
  int done = 0;
#pragma omp parallel num_threads(kThreads)
  {
    for (int i = 0; i < 50; ++i) {
#pragma omp task shared(done)
#pragma omp atomic
      done++;
    }
    barrier_ext(2);
    CHECK(done == 50 * kThreads, "%d of %d tasks at the barrier", done, 50 * kThreads);
  }
}

static void masked(void) {
  int ran[2] = {0, 0};
#pragma omp parallel num_threads(kThreads)
  {
    if (has_masked_thread_num(2)) ran[0] += 1 + omp_get_thread_num();
    if (has_masked_thread_num_with_end(0)) {
      ran[1]++;
      masked_end();
    }
    CHECK(!has_masked_thread_num(kThreads), "thread %d is one of those that are not there",
          omp_get_thread_num());
  }
  EQUAL(ran[0], 3);
  EQUAL(ran[1], 1);
  CHECK(has_masked_thread_num(0) && !has_masked_thread_num(1), "outside of regions");
}

static void leagues(void) {
  memset(hits, 0, sizeof hits);
#pragma omp teams num_teams(3)
  {
    run_block(distribute_static(kLength));
    run_block(distribute_static_start(kLength));
    distribute_static_dispatch(0, 1);
    distribute_static_end();
  }
  expect_hits(2);
}

/// With OMP_CANCELLATION: members in the barrier leave it.
static void cancelled(void) {
  if (!omp_get_cancellation()) return;
  int left = 0;
#pragma omp parallel num_threads(kThreads)
  {
    bool leaves = false;
    if (omp_get_thread_num() == 1)
      leaves = cancel_construct(1, true);
    else
      leaves = barrier_cancel_ext(2);
    CHECK(leaves, "thread %d stays", omp_get_thread_num());
#pragma omp atomic
    left++;
  }
  EQUAL(left, kThreads);
}

static void routines(void) {
  int (*control_tool)(int, int, void*);
  int32_t (*control_tool_f)(const int32_t*, const int32_t*);
  int32_t (*control_tool_8)(const int64_t*, const int64_t*);
  void (*distances)(int, const int*, int*);
  int (*of_dimension[5])(int);
  const char* names[5] = {"omp_get_num_threads_dim", "omp_get_thread_num_dim",
                          "omp_get_num_teams_dim", "omp_get_team_num_dim",
                          "omp_get_thread_limit_dim"};
  int (*supported_threads)(int, int);
  int (*supported_teams)(int, int);
  int (*league_dims)(int, int);
  int (*team_dims)(int, int);
  int32_t (*league_dims_f)(const int32_t*, const int32_t*);
  int32_t (*team_dims_f)(const int32_t*, const int32_t*);
  FIND(control_tool, "omp_control_tool", "OMP_6.0");
  FIND(control_tool_f, "omp_control_tool_", "OMP_6.0");
  FIND(control_tool_8, "omp_control_tool_8_", "OMP_6.0");
  FIND(distances, "omp_get_device_distances", "OMP_6.1");
  for (int i = 0; i < 5; ++i) FIND(of_dimension[i], names[i], "OMP_6.1");
  FIND(supported_threads, "omp_get_supported_threads_dim", "OMP_6.1");
  FIND(supported_teams, "omp_get_supported_teams_dim", "OMP_6.1");
  FIND(league_dims, "omp_get_supported_active_league_dims", "OMP_6.1");
  FIND(team_dims, "omp_get_supported_active_team_dims", "OMP_6.1");
  FIND(league_dims_f, "omp_get_supported_active_league_dims_", "OMP_6.1");
  FIND(team_dims_f, "omp_get_supported_active_team_dims_", "OMP_6.1");

  const int32_t start = 1;
  const int64_t wide = 1;
  enum { kNoTool = -2 };
  EQUAL(control_tool(1, 0, NULL), kNoTool);
  EQUAL(control_tool_f(&start, &start), kNoTool);
  EQUAL(control_tool_8(&wide, &wide), kNoTool);

  enum { kHost = 0, kInitial = -1, kInvalid = -4, kDefault = -5 };
  const int devices[] = {kInitial, kHost, kDefault, kInvalid, 1, -99};
  int found[6];
  distances(6, devices, found);
  for (int i = 0; i < 6; ++i) CHECK(found[i] == (i < 3 ? 0 : -1), "device %d: %d", i, found[i]);
  omp_set_default_device(7);
  distances(1, &devices[2], found);
  EQUAL(found[0], -1);
  omp_set_default_device(0);

#pragma omp teams num_teams(2) thread_limit(3)
#pragma omp parallel num_threads(2)
  for (int dimension = 0; dimension < 4; ++dimension) {
    const int own[5] = {omp_get_num_threads(), omp_get_thread_num(), omp_get_num_teams(),
                        omp_get_team_num(), omp_get_thread_limit()};
    for (int i = 0; i < 5; ++i) {
      const int expected = dimension == 0 ? own[i] : i == 1 || i == 3 ? 0 : 1;
      CHECK(of_dimension[i](dimension) == expected, "%s(%d) is %d and not %d", names[i], dimension,
            of_dimension[i](dimension), expected);
    }
  }
  EQUAL(supported_threads(kInitial, 0), INT_MAX);
  EQUAL(supported_teams(kHost, 0), INT_MAX);
  EQUAL(supported_threads(kHost, 1), 1);
  EQUAL(supported_teams(kHost, 12), 1);
  EQUAL(supported_teams(4, 0), 0);
  const int32_t host = kHost;
  for (int native = 0; native < 2; ++native) {
    EQUAL(league_dims(kInitial, native), 1);
    EQUAL(team_dims(kHost, native), 1);
    EQUAL(team_dims(3, native), 0);
    EQUAL(league_dims_f(&host, &native), 1);
    EQUAL(team_dims_f(&host, &native), 1);
  }
}

int main(void) {
  FIND(cancel_construct, "GOMP_cancel", "GOMP_4.0");
  FIND(barrier_ext, "GOMP_barrier_ext", "GOMP_6.0.2");
  FIND(barrier_cancel_ext, "GOMP_barrier_cancel_ext", "GOMP_6.0.2");
  FIND(has_masked_thread_num, "GOMP_has_masked_thread_num", "GOMP_6.0.2");
  FIND(has_masked_thread_num_with_end, "GOMP_has_masked_thread_num_with_end", "GOMP_6.0.2");
  FIND(masked_end, "GOMP_masked_end", "GOMP_6.0.2");
  FIND(loop_static, "GOMP_loop_static_worksharing", "GOMP_6.0.2");
  FIND(loop_static_start, "GOMP_loop_static_worksharing_start", "GOMP_6.0.2");
  FIND(loop_static_dispatch, "GOMP_loop_static_worksharing_dispatch", "GOMP_6.0.2");
  FIND(loop_static_end, "GOMP_loop_static_worksharing_end", "GOMP_6.0.2");
  FIND(distribute_static, "GOMP_distribute_static_worksharing", "GOMP_6.0.2");
  FIND(distribute_static_start, "GOMP_distribute_static_worksharing_start", "GOMP_6.0.2");
  FIND(distribute_static_dispatch, "GOMP_distribute_static_worksharing_dispatch", "GOMP_6.0.2");
  FIND(distribute_static_end, "GOMP_distribute_static_worksharing_end", "GOMP_6.0.2");
  omp_set_dynamic(0);
  loops();
  tasks();
  masked();
  leagues();
  cancelled();
  routines();
  return passed();
}
