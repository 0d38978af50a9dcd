// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The omp_* routines: api MODE. Each mode is one subject; all hold on GCC 12's libgomp too.
#include "../programs/check.h"

#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <stdint.h>

#define EQUAL(found, wanted) \
  CHECK((long)(found) == (long)(wanted), #found " is %ld, not %ld", (long)(found), (long)(wanted))

// Outside of all regions, and as the first thing that the program asks.
static void orphaned(void) {
  EQUAL(omp_get_thread_num(), 0);
  EQUAL(omp_get_num_threads(), 1);
  EQUAL(omp_get_level(), 0);
  EQUAL(omp_get_active_level(), 0);
  EQUAL(omp_in_parallel(), 0);
  EQUAL(omp_in_final(), 0);
  EQUAL(omp_get_ancestor_thread_num(0), 0);
  EQUAL(omp_get_ancestor_thread_num(1), -1);
  EQUAL(omp_get_ancestor_thread_num(-1), -1);
  EQUAL(omp_get_team_size(0), 1);
  EQUAL(omp_get_team_size(1), -1);
  EQUAL(omp_get_team_size(INT_MIN), -1);
  EQUAL(omp_get_team_num(), 0);
  EQUAL(omp_get_num_teams(), 1);
  EQUAL(omp_get_supported_active_levels(), 255);
  CHECK(omp_get_num_procs() >= 1, "no processors");
}

static void* orphaned_thread(void* unused) {
  (void)unused;
  orphaned();
  return NULL;
}

static void levels(void) {
  omp_set_max_active_levels(3);
  omp_set_dynamic(0);
#pragma omp parallel num_threads(3)
  {
    const int outer = omp_get_thread_num();
    EQUAL(omp_get_level(), 1);
    EQUAL(omp_get_team_size(1), 3);
    EQUAL(omp_get_ancestor_thread_num(1), outer);
    EQUAL(omp_get_ancestor_thread_num(2), -1);
#pragma omp parallel num_threads(1)
    {
      // A team of one nests, but is not active.
      EQUAL(omp_get_level(), 2);
      EQUAL(omp_get_active_level(), 1);
      EQUAL(omp_in_parallel(), 1);
      EQUAL(omp_get_team_size(2), 1);
#pragma omp parallel num_threads(2)
      {
        const int inner = omp_get_thread_num();
        EQUAL(omp_get_level(), 3);
        EQUAL(omp_get_active_level(), 2);
        EQUAL(omp_get_num_threads(), 2);
        EQUAL(omp_get_ancestor_thread_num(0), 0);
        EQUAL(omp_get_ancestor_thread_num(1), outer);
        EQUAL(omp_get_ancestor_thread_num(2), 0);
        EQUAL(omp_get_ancestor_thread_num(3), inner);
        EQUAL(omp_get_ancestor_thread_num(4), -1);
        EQUAL(omp_get_team_size(1), 3);
        EQUAL(omp_get_team_size(2), 1);
        EQUAL(omp_get_team_size(3), 2);
        EQUAL(omp_get_team_size(4), -1);
      }
      EQUAL(omp_get_level(), 2);
    }
    EQUAL(omp_get_thread_num(), outer);
  }
  EQUAL(omp_get_level(), 0);
}

static void icvs(void) {
  omp_set_num_threads(5);
  EQUAL(omp_get_max_threads(), 5);
  omp_set_num_threads(-4);
  EQUAL(omp_get_max_threads(), 1);
  omp_set_num_threads(3);

  omp_set_dynamic(7);
  EQUAL(omp_get_dynamic(), 1);
  omp_set_dynamic(0);
  EQUAL(omp_get_dynamic(), 0);

  omp_set_max_active_levels(1);
  EQUAL(omp_get_nested(), 0);
  omp_set_nested(1);
  EQUAL(omp_get_max_active_levels(), 255);
  EQUAL(omp_get_nested(), 1);
  omp_set_nested(0);
  EQUAL(omp_get_max_active_levels(), 1);
  omp_set_max_active_levels(-1);
  EQUAL(omp_get_max_active_levels(), 1);
  omp_set_max_active_levels(1000);
  EQUAL(omp_get_max_active_levels(), 255);
  omp_set_max_active_levels(2);

  omp_sched_t kind;
  int chunk;
  omp_get_schedule(&kind, &chunk);
  EQUAL(kind, omp_sched_dynamic);
  EQUAL(chunk, 1);
  omp_set_schedule(omp_sched_guided, 17);
  omp_get_schedule(&kind, &chunk);
  EQUAL(kind, omp_sched_guided);
  EQUAL(chunk, 17);
  omp_set_schedule(omp_sched_static, 0);
  omp_get_schedule(&kind, &chunk);
  EQUAL(kind, omp_sched_static);
  EQUAL(chunk, 0);
  omp_set_schedule((omp_sched_t)99, 5);
  omp_get_schedule(&kind, &chunk);
  EQUAL(kind, omp_sched_static);

  EQUAL(omp_get_thread_limit(), INT_MAX);
  EQUAL(omp_get_cancellation(), 0);
  EQUAL(omp_get_max_task_priority(), 0);

  // What a member sets is its own, and ends with it; what the opener had is inherited.
#pragma omp parallel
  {
    EQUAL(omp_get_num_threads(), 3);
    EQUAL(omp_get_max_threads(), 3);
    const int mine = omp_get_thread_num() + 2;
    omp_set_num_threads(mine);
    omp_set_schedule(omp_sched_dynamic, mine);
#pragma omp barrier
    EQUAL(omp_get_max_threads(), mine);
    omp_get_schedule(&kind, &chunk);
    int my_chunk;
    omp_sched_t my_kind;
    omp_get_schedule(&my_kind, &my_chunk);
    EQUAL(my_kind, omp_sched_dynamic);
    EQUAL(my_chunk, mine);
#pragma omp parallel
    EQUAL(omp_get_num_threads(), mine);
  }
  EQUAL(omp_get_max_threads(), 3);
  omp_get_schedule(&kind, &chunk);
  EQUAL(kind, omp_sched_static);
}

// OMP_NUM_THREADS=3,2 OMP_THREAD_LIMIT=7 OMP_SCHEDULE=guided,4 OMP_CANCELLATION=true
// OMP_MAX_TASK_PRIORITY=9 OMP_DEFAULT_DEVICE=2 OMP_NUM_TEAMS=4 OMP_TEAMS_THREAD_LIMIT=6
static void environment(void) {
  omp_sched_t kind;
  int chunk;
  EQUAL(omp_get_max_threads(), 3);
  EQUAL(omp_get_max_active_levels(), 255);
  EQUAL(omp_get_thread_limit(), 7);
  omp_get_schedule(&kind, &chunk);
  EQUAL(kind, omp_sched_guided);
  EQUAL(chunk, 4);
  EQUAL(omp_get_cancellation(), 1);
  EQUAL(omp_get_max_task_priority(), 9);
  EQUAL(omp_get_default_device(), 2);
  EQUAL(omp_get_max_teams(), 4);
  EQUAL(omp_get_teams_thread_limit(), 6);
#pragma omp parallel
  {
    EQUAL(omp_get_num_threads(), 3);
    EQUAL(omp_get_max_threads(), 2);
  }
  int members = 0;
#pragma omp parallel num_threads(100) reduction(+ : members)
  members += 1;
  EQUAL(members, 7);
}

static void clocks(void) {
  const double tick = omp_get_wtick();
  CHECK(tick > 0 && tick < 0.1, "omp_get_wtick is %g", tick);
  double before = omp_get_wtime();
  for (int i = 0; i < 10000; ++i) {
    const double now = omp_get_wtime();
    CHECK(now >= before, "time went back by %g s", before - now);
    before = now;
  }
  struct timespec monotonic;
  clock_gettime(CLOCK_MONOTONIC, &monotonic);
  const double reference = (double)monotonic.tv_sec + (double)monotonic.tv_nsec / 1e9;
  CHECK(reference >= before && reference - before < 5, "omp_get_wtime is off by %g s",
        reference - before);
}

static void final_tasks(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
  {
    EQUAL(omp_in_final(), 0);
#pragma omp task final(1)
    {
      EQUAL(omp_in_final(), 1);
#pragma omp task
      EQUAL(omp_in_final(), 1);
    }
#pragma omp task
    EQUAL(omp_in_final(), 0);
#pragma omp taskwait
    EQUAL(omp_in_final(), 0);
  }
}

static int team_seen[8];
static int teams_run;

static void check_team(int teams, int limit) {
  const int team = omp_get_team_num();
  EQUAL(omp_get_num_teams(), teams);
  CHECK(team >= 0 && team < teams, "team %d of %d", team, teams);
  __atomic_fetch_add(&team_seen[team], 1, __ATOMIC_RELAXED);
  int members = 0;
#pragma omp parallel reduction(+ : members)
  {
    members += 1;
    // Members of nested teams are of the same league.
    EQUAL(omp_get_team_num(), team);
    EQUAL(omp_get_num_teams(), teams);
    EQUAL(omp_get_thread_limit(), limit);
    EQUAL(omp_get_level(), 1);
#pragma omp parallel num_threads(2)
    EQUAL(omp_get_team_num(), team);
  }
  CHECK(members <= limit, "%d members with a limit of %d", members, limit);
  ++teams_run;
}

static void teams(void) {
  omp_set_num_threads(6);
  omp_set_max_active_levels(2);
#pragma omp teams num_teams(4) thread_limit(3)
  check_team(4, 3);
  EQUAL(teams_run, 4);
  for (int i = 0; i < 4; ++i) EQUAL(team_seen[i], 1);
  EQUAL(omp_get_num_teams(), 1);
  EQUAL(omp_get_team_num(), 0);
  EQUAL(omp_get_thread_limit(), INT_MAX);

  omp_set_num_teams(2);
  EQUAL(omp_get_max_teams(), 2);
  omp_set_teams_thread_limit(4);
  EQUAL(omp_get_teams_thread_limit(), 4);
  teams_run = 0;
#pragma omp teams
  check_team(2, 4);
  EQUAL(teams_run, 2);
  omp_set_num_teams(-3);
  omp_set_teams_thread_limit(-3);
  CHECK(omp_get_max_teams() >= 0 && omp_get_teams_thread_limit() >= 0,
        "a negative number was taken");

  long sum = 0;
#pragma omp teams distribute parallel for num_teams(3) reduction(+ : sum)
  for (int i = 0; i < 1000; ++i) sum += i;
  EQUAL(sum, 499500);
}

static void devices(void) {
  const int host = omp_get_initial_device();
  EQUAL(omp_get_num_devices(), 0);
  EQUAL(host, 0);
  EQUAL(omp_get_device_num(), host);
  EQUAL(omp_is_initial_device(), 1);
  omp_set_default_device(3);
  EQUAL(omp_get_default_device(), 3);
  omp_set_default_device(-3);
  EQUAL(omp_get_default_device(), 0);

  char* block = omp_target_alloc(64, host);
  CHECK(block != NULL, "no memory on the host");
  CHECK(omp_target_alloc(64, host + 5) == NULL, "memory on a device that is not there");
  memset(block, 'x', 64);
  const char text[] = "0123456789";
  EQUAL(omp_target_memcpy(block, text, 4, 2, 3, host, host), 0);
  CHECK(memcmp(block, "xx3456xx", 8) == 0, "omp_target_memcpy left %.8s", block);
  EQUAL(omp_target_memcpy(block, text, 4, 0, 0, host + 5, host), EINVAL);
  EQUAL(omp_target_memcpy(block, text, 4, 0, 0, host, host + 5), EINVAL);
  CHECK(memcmp(block, "xx3456xx", 8) == 0, "a refused copy left %.8s", block);
  EQUAL(omp_target_is_present(block, host), 1);
  EQUAL(omp_target_is_present(block, host + 5), 0);
  EQUAL(omp_target_associate_ptr(text, block, 4, 0, host), EINVAL);
  EQUAL(omp_target_disassociate_ptr(text, host), EINVAL);
  omp_target_free(block, host);

  EQUAL(omp_target_memcpy_rect(NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, host, host),
        INT_MAX);
  // A box of 2 x 2 x 3 out of 4 x 3 x 5 into 3 x 4 x 4, against three loops.
  int from[4][3][5], to[3][4][4], expected[3][4][4];
  for (int i = 0; i < 60; ++i) ((int*)from)[i] = i;
  memset(to, -1, sizeof to);
  memset(expected, -1, sizeof expected);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int k = 0; k < 3; ++k) expected[i + 1][j + 2][k] = from[i + 2][j + 1][k + 1];
  const size_t extent[] = {2, 2, 3}, to_offset[] = {1, 2, 0}, from_offset[] = {2, 1, 1};
  const size_t to_dims[] = {3, 4, 4}, from_dims[] = {4, 3, 5};
  EQUAL(omp_target_memcpy_rect(to, from, sizeof(int), 3, extent, to_offset, from_offset, to_dims,
                               from_dims, host, host),
        0);
  CHECK(memcmp(to, expected, sizeof to) == 0, "omp_target_memcpy_rect copied another box");
}

// Sizes whose product does not fit; libgomp copies on.
static void overflow(void) {
  int from[4] = {1, 2, 3, 4}, to[4] = {0};
  const size_t one[] = {1, 1, 1}, zero[] = {0, 0, 0}, huge[] = {2, SIZE_MAX / 2, 4};
  const int host = omp_get_initial_device();
  EQUAL(omp_target_memcpy_rect(to, from, sizeof(int), 3, one, zero, zero, huge, huge, host, host),
        EINVAL);
  EQUAL(omp_target_memcpy_rect(to, from, sizeof(int), 0, one, zero, zero, one, one, host, host),
        EINVAL);
  EQUAL(to[0], 0);
}

static void pause_resources(void) {
  const int host = omp_get_initial_device();
  for (int round = 0; round < 3; ++round) {
    int members = 0;
#pragma omp parallel num_threads(3) reduction(+ : members)
    {
      members += 1;
      CHECK(omp_pause_resource(omp_pause_soft, host) != 0, "paused inside a region");
      CHECK(omp_pause_resource_all(omp_pause_hard) != 0, "paused inside a region");
    }
    EQUAL(members, 3);
    EQUAL(omp_pause_resource(round == 0 ? omp_pause_soft : omp_pause_hard, host), 0);
    EQUAL(omp_pause_resource_all(omp_pause_soft), 0);
  }
  CHECK(omp_pause_resource(omp_pause_soft, host + 5) != 0, "paused a device that is not there");
}

// Without OMP_PLACES.
static void unbound(void) {
  EQUAL(omp_get_proc_bind(), omp_proc_bind_false);
  EQUAL(omp_get_num_places(), 0);
  EQUAL(omp_get_place_num(), -1);
  EQUAL(omp_get_partition_num_places(), 0);
  EQUAL(omp_get_place_num_procs(0), 0);
  int untouched = 77;
  omp_get_place_proc_ids(0, &untouched);
  omp_get_partition_place_nums(&untouched);
  EQUAL(untouched, 77);
}

// OMP_PLACES={0},{1},{0,1} OMP_PROC_BIND=spread,close
static void bound(void) {
  EQUAL(omp_get_proc_bind(), omp_proc_bind_spread);
  EQUAL(omp_get_num_places(), 3);
  EQUAL(omp_get_place_num(), 0);
  EQUAL(omp_get_partition_num_places(), 3);
  EQUAL(omp_get_place_num_procs(1), 1);
  EQUAL(omp_get_place_num_procs(2), 2);
  EQUAL(omp_get_place_num_procs(3), 0);
  EQUAL(omp_get_place_num_procs(-1), 0);
  int ids[3] = {-7, -7, -7};
  omp_get_place_proc_ids(2, ids);
  EQUAL(ids[0], 0);
  EQUAL(ids[1], 1);
  EQUAL(ids[2], -7);
  int numbers[4] = {-7, -7, -7, -7};
  omp_get_partition_place_nums(numbers);
  for (int i = 0; i < 3; ++i) EQUAL(numbers[i], i);
  EQUAL(numbers[3], -7);
#pragma omp parallel num_threads(3)
  {
    // One place each, and the inner team stays on it.
    EQUAL(omp_get_place_num(), omp_get_thread_num());
    EQUAL(omp_get_partition_num_places(), 1);
    EQUAL(omp_get_proc_bind(), omp_proc_bind_close);
    const int place = omp_get_place_num();
#pragma omp parallel num_threads(2)
    EQUAL(omp_get_place_num(), place);
    // The list says what holds inside a region of level 1; a clause of a deeper one holds inside it.
#pragma omp parallel num_threads(2) proc_bind(primary)
    {
      EQUAL(omp_get_proc_bind(), omp_proc_bind_primary);
#pragma omp parallel if (0)
      EQUAL(omp_get_proc_bind(), omp_proc_bind_primary);
#pragma omp parallel if (0) proc_bind(spread)
      EQUAL(omp_get_proc_bind(), omp_proc_bind_spread);
    }
#pragma omp parallel if (0)
    EQUAL(omp_get_proc_bind(), omp_proc_bind_close);
  }
#pragma omp parallel if (0) proc_bind(primary)
  EQUAL(omp_get_proc_bind(), omp_proc_bind_close);
  EQUAL(omp_get_proc_bind(), omp_proc_bind_spread);
  EQUAL(omp_get_place_num(), 0);
}

static void formats(void) {
  const char* format = "%n/%N level %L parent %a team %t/%T %{thread_num}%%";
  omp_set_affinity_format(format);
  char text[200];
  EQUAL(omp_get_affinity_format(text, sizeof text), strlen(format));
  CHECK(strcmp(text, format) == 0, "the format became %s", text);
  EQUAL(omp_get_affinity_format(text, 4), strlen(format));
  CHECK(strcmp(text, "%n/") == 0, "the cut format is %s", text);

  const char* initial = "0/1 level 0 parent -1 team 0/1 0%";
  EQUAL(omp_capture_affinity(text, sizeof text, NULL), strlen(initial));
  CHECK(strcmp(text, initial) == 0, "captured %s", text);
  EQUAL(omp_capture_affinity(text, 5, ""), strlen(initial));
  CHECK(strcmp(text, "0/1 ") == 0, "the cut capture is %s", text);

  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
  {
    const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(3)
    {
      char mine[100], expected[100];
      const size_t length = omp_capture_affinity(mine, sizeof mine, "%n/%N level %L parent %a");
      snprintf(expected, sizeof expected, "%d/3 level 2 parent %d", omp_get_thread_num(), outer);
      CHECK(strcmp(mine, expected) == 0 && length == strlen(expected), "captured %s, not %s", mine,
            expected);
    }
  }
  omp_capture_affinity(text, sizeof text, "%P");
  EQUAL(atol(text), getpid());
  omp_capture_affinity(text, sizeof text, "%i");
  EQUAL(strtoul(text, NULL, 16), pthread_self());
  char cpus[200];
  omp_capture_affinity(cpus, sizeof cpus, "%A");
  CHECK(cpus[0] >= '0' && cpus[0] <= '9', "%%A is %s", cpus);
}

// Another pthread is an initial thread of its own: nothing of main's ICVs.
static void* other_initial_thread(void* max_threads) {
  orphaned();
  EQUAL(omp_get_max_threads(), (long)(intptr_t)max_threads);
  int members = 0;
#pragma omp parallel num_threads(3) reduction(+ : members)
  members += 1;
  EQUAL(members, 3);
  return NULL;
}

static void pthreads(void) {
  const long default_threads = omp_get_max_threads();
  omp_set_num_threads((int)default_threads + 5);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, other_initial_thread, (void*)default_threads) == 0,
        "no thread");
  pthread_join(other, NULL);
  EQUAL(omp_get_max_threads(), default_threads + 5);
}

// Before main() and before the library's own constructors may have run.
static int early_threads, early_number;
__attribute__((constructor(101))) static void early(void) {
  early_threads = omp_get_num_threads();
  early_number = omp_get_thread_num();
}

int main(int argc, char** argv) {
  CHECK(argc == 2, "usage: api MODE");
  arm_watchdog(50);
  const struct {
    const char* name;
    void (*run)(void);
  } modes[] = {{"levels", levels},           {"icvs", icvs},
               {"environment", environment}, {"clocks", clocks},
               {"final", final_tasks},       {"teams", teams},
               {"devices", devices},         {"pause", pause_resources},
               {"unbound", unbound},         {"bound", bound},
               {"formats", formats},         {"pthreads", pthreads},
               {"orphaned", orphaned},       {"overflow", overflow}};
  EQUAL(early_threads, 1);
  EQUAL(early_number, 0);
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i) {
    if (strcmp(argv[1], modes[i].name) != 0) continue;
    modes[i].run();
    if (strcmp(argv[1], "orphaned") == 0) {
      pthread_t other;
      CHECK(pthread_create(&other, NULL, orphaned_thread, NULL) == 0, "no thread");
      pthread_join(other, NULL);
    }
    printf("%s: ok\n", argv[1]);
    return 0;
  }
  CHECK(0, "no mode %s", argv[1]);
}
