// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ICV routines and the scope of what they set: per task, inherited by children, restored afterwards.
#include "check.h"

#include <limits.h>
#include <omp.h>
#include <pthread.h>

static void defaults(void) {
  CHECK(omp_get_level() == 0 && omp_get_active_level() == 0 && !omp_in_parallel(),
        "the program starts in a region");
  CHECK(omp_get_num_threads() == 1 && omp_get_thread_num() == 0, "the program starts in a team");
  CHECK(omp_get_num_procs() >= 1, "omp_get_num_procs: %d", omp_get_num_procs());
  CHECK(omp_get_max_threads() >= 1 && omp_get_thread_limit() >= omp_get_max_threads(),
        "limits: %d of %d", omp_get_max_threads(), omp_get_thread_limit());
  CHECK(!omp_get_dynamic() && !omp_in_final() && !omp_get_cancellation(), "odd defaults");
  CHECK(omp_get_max_task_priority() == 0, "max task priority %d", omp_get_max_task_priority());
  CHECK(omp_get_num_teams() == 1 && omp_get_team_num() == 0, "teams outside teams");
  CHECK(omp_is_initial_device() && omp_get_num_devices() == 0, "devices: %d",
        omp_get_num_devices());
  CHECK(omp_get_wtick() > 0 && omp_get_wtick() < 1, "wtick %g", omp_get_wtick());
  double before = omp_get_wtime();
  usleep(2000);
  double passed_time = omp_get_wtime() - before;
  CHECK(passed_time >= 0.0019, "omp_get_wtime went on by %g s in 2 ms", passed_time);
}

static void threads_var(void) {
  int original = omp_get_max_threads();
  omp_set_num_threads(5);
  CHECK(omp_get_max_threads() == 5, "nthreads-var %d", omp_get_max_threads());
#pragma omp parallel
  {
    CHECK(omp_get_num_threads() == 5, "team of %d", omp_get_num_threads());
    CHECK(omp_get_max_threads() == 5, "members inherit %d", omp_get_max_threads());
    omp_set_num_threads(2 + omp_get_thread_num() % 2);
#pragma omp barrier
    int mine = 2 + omp_get_thread_num() % 2;
    CHECK(omp_get_max_threads() == mine, "a member's nthreads-var is %d, it set %d",
          omp_get_max_threads(), mine);
    int size = 0;
#pragma omp parallel reduction(max : size)
    size = omp_get_num_threads();
    CHECK(size == mine, "nested team of %d, nthreads-var %d", size, mine);
    // An explicit task has a copy of its own.
#pragma omp task
    {
      CHECK(omp_get_max_threads() == mine, "a task inherits %d", omp_get_max_threads());
      omp_set_num_threads(17);
      CHECK(omp_get_max_threads() == 17, "a task cannot set its own");
#pragma omp task
      CHECK(omp_get_max_threads() == 17, "a child task inherits %d", omp_get_max_threads());
#pragma omp taskwait
    }
#pragma omp taskwait
    CHECK(omp_get_max_threads() == mine, "a task changed its parent's nthreads-var to %d",
          omp_get_max_threads());
#pragma omp task if (0)
    omp_set_num_threads(18);
    CHECK(omp_get_max_threads() == mine, "an undeferred task changed its parent's nthreads-var");
  }
  CHECK(omp_get_max_threads() == 5, "the region changed nthreads-var to %d", omp_get_max_threads());
  omp_set_num_threads(0);  // not positive: one thread
  CHECK(omp_get_max_threads() == 1, "nthreads-var 0 became %d", omp_get_max_threads());
  omp_set_num_threads(original);
}

static void schedule_var(void) {
  omp_sched_t kind, kept;
  int chunk, kept_chunk;
  omp_get_schedule(&kept, &kept_chunk);
  omp_set_schedule(omp_sched_guided, 9);
#pragma omp parallel num_threads(4)
  {
    omp_sched_t mine;
    int my_chunk;
    omp_get_schedule(&mine, &my_chunk);
    CHECK(mine == omp_sched_guided && my_chunk == 9, "members inherit schedule %d,%d", (int)mine,
          my_chunk);
    omp_set_schedule(omp_sched_static, omp_get_thread_num() + 1);
#pragma omp barrier
    omp_get_schedule(&mine, &my_chunk);
    CHECK(mine == omp_sched_static && my_chunk == omp_get_thread_num() + 1, "schedule %d,%d",
          (int)mine, my_chunk);
  }
  omp_get_schedule(&kind, &chunk);
  CHECK(kind == omp_sched_guided && chunk == 9, "the region changed the schedule to %d,%d",
        (int)kind, chunk);
  omp_set_schedule((omp_sched_t)(omp_sched_dynamic | omp_sched_monotonic), 4);
  omp_get_schedule(&kind, &chunk);
  CHECK(((unsigned)kind & 0x7fffffffu) == omp_sched_dynamic && chunk == 4,
        "monotonic:dynamic,4 is %#x,%d", (unsigned)kind, chunk);
  omp_set_schedule(omp_sched_dynamic, 0);
  omp_get_schedule(&kind, &chunk);
  CHECK(kind == omp_sched_dynamic && chunk == 1, "dynamic,0 is %d,%d", (int)kind, chunk);
  omp_set_schedule(kept, kept_chunk);
}

static void flags(void) {
  omp_set_dynamic(1);
#pragma omp parallel num_threads(4)
  {
    CHECK(omp_get_dynamic() == 1, "members do not inherit dyn-var");
    CHECK(omp_get_num_threads() >= 1 && omp_get_num_threads() <= 4, "dynamic team of %d",
          omp_get_num_threads());
    omp_set_dynamic(0);
  }
  CHECK(omp_get_dynamic() == 1, "the region changed dyn-var");
  omp_set_dynamic(0);
  omp_set_max_active_levels(1);
  CHECK(omp_get_max_active_levels() == 1, "max-active-levels %d", omp_get_max_active_levels());
  omp_set_max_active_levels(100000);
  CHECK(omp_get_max_active_levels() == omp_get_supported_active_levels(), "max-active-levels %d",
        omp_get_max_active_levels());
  omp_set_max_active_levels(4);
#pragma omp parallel num_threads(3)
  {
    omp_set_max_active_levels(1 + omp_get_thread_num());
#pragma omp barrier
    int size = 0;
#pragma omp parallel num_threads(2) reduction(max : size)
    size = omp_get_num_threads();
    int expected = omp_get_thread_num() == 0 ? 1 : 2;
    CHECK(size == expected, "member %d with max-active-levels %d got a team of %d",
          omp_get_thread_num(), omp_get_max_active_levels(), size);
  }
  CHECK(omp_get_max_active_levels() == 4, "the region changed max-active-levels to %d",
        omp_get_max_active_levels());
}

static void* another_initial_thread(void* argument) {
  int expected = *(int*)argument;
  CHECK(omp_get_max_threads() == expected,
        "a new pthread has nthreads-var %d, the environment's is %d", omp_get_max_threads(),
        expected);
  omp_set_num_threads(expected + 3);
  return NULL;
}

static void initial_threads(void) {
  int expected = omp_get_max_threads();
  omp_set_num_threads(expected + 7);
  pthread_t handle;
  CHECK(pthread_create(&handle, NULL, another_initial_thread, &expected) == 0,
        "pthread_create failed");
  pthread_join(handle, NULL);
  CHECK(omp_get_max_threads() == expected + 7, "another thread changed our nthreads-var to %d",
        omp_get_max_threads());
  omp_set_num_threads(expected);
}

static void formats(void) {
  char text[200], kept[200];
  size_t length = omp_get_affinity_format(kept, sizeof kept);
  CHECK(length > 0 && length == strlen(kept), "affinity format of %zu characters: '%s'", length,
        kept);
  omp_set_affinity_format("<%n of %N at %L>");
  CHECK(omp_get_affinity_format(text, sizeof text) == 16 && !strcmp(text, "<%n of %N at %L>"),
        "format '%s'", text);
#pragma omp parallel num_threads(3) private(text)
  {
    char expected[60];
    snprintf(expected, sizeof expected, "<%d of 3 at 1>", omp_get_thread_num());
    size_t size = omp_capture_affinity(text, sizeof text, NULL);
    CHECK(size == strlen(expected) && !strcmp(text, expected), "captured '%s', expected '%s'", text,
          expected);
    size = omp_capture_affinity(text, 5, "%{thread_num}%%|%.4N|%0.4N|%4N|");
    CHECK(size == 18 && strlen(text) == 4, "captured %zu characters, '%s'", size, text);
  }
  omp_set_affinity_format(kept);
}

/// Memory from OpenMP's allocators.
static void allocators(void) {
#pragma omp parallel num_threads(4)
  for (int i = 1; i < 200; ++i) {
    char* block = omp_alloc((size_t)i * 10, i % 2 ? omp_default_mem_alloc : omp_thread_mem_alloc);
    CHECK(block, "omp_alloc gave nothing");
    memset(block, i, (size_t)i * 10);
    char* cleared = omp_calloc((size_t)i, 8, omp_default_mem_alloc);
    for (int k = 0; k < i * 8; ++k) CHECK(cleared[k] == 0, "omp_calloc did not clear");
    char* aligned = omp_aligned_alloc(256, (size_t)i * 256, omp_null_allocator);
    CHECK(((unsigned long)aligned & 255) == 0, "omp_aligned_alloc gave %p", (void*)aligned);
    block = omp_realloc(block, (size_t)i * 20, omp_default_mem_alloc, omp_null_allocator);
    for (int k = 0; k < i * 10; ++k) CHECK(block[k] == (char)i, "omp_realloc lost the contents");
    omp_free(block, omp_null_allocator);
    omp_free(cleared, omp_default_mem_alloc);
    omp_free(aligned, omp_null_allocator);
  }
  omp_alloctrait_t traits[2] = {{omp_atk_alignment, 512}, {omp_atk_fallback, omp_atv_null_fb}};
  omp_allocator_handle_t own = omp_init_allocator(omp_default_mem_space, 2, traits);
  CHECK(own != omp_null_allocator, "omp_init_allocator failed");
  void* block = omp_alloc(100, own);
  CHECK(block && ((unsigned long)block & 511) == 0, "own allocator gave %p", block);
  omp_free(block, own);
  omp_destroy_allocator(own);
}

static void pausing(void) {
  for (int round = 0; round < 5; ++round) {
    int members = 0;
#pragma omp parallel num_threads(4) reduction(+ : members)
    members++;
    CHECK(members == 4, "%d members", members);
    CHECK(omp_pause_resource_all(round % 2 ? omp_pause_hard : omp_pause_soft) == 0,
          "omp_pause_resource_all failed");
  }
#pragma omp parallel num_threads(2)
  {
    if (omp_get_thread_num() == 0)
      CHECK(omp_pause_resource_all(omp_pause_soft) != 0, "paused inside a region");
#pragma omp barrier
  }
}

static void host_teams(void) {
  int teams = 0, leagues = 0;
#pragma omp teams num_teams(3) thread_limit(4)
  {
    CHECK(omp_get_num_teams() >= 1 && omp_get_num_teams() <= 3, "%d teams", omp_get_num_teams());
    CHECK(omp_get_team_num() >= 0 && omp_get_team_num() < omp_get_num_teams(), "team %d",
          omp_get_team_num());
    int members = 0;
#pragma omp parallel num_threads(8) reduction(+ : members)
    {
      members++;
      CHECK(omp_get_thread_limit() <= 4, "thread limit %d inside teams", omp_get_thread_limit());
      CHECK(omp_get_num_threads() <= 4, "team of %d, limit 4", omp_get_num_threads());
    }
    CHECK(members >= 1 && members <= 4, "%d members, limit 4", members);
    __atomic_add_fetch(&teams, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&leagues, omp_get_num_teams(), __ATOMIC_RELAXED);
  }
  CHECK(teams == leagues, "%d teams ran of %d", teams, leagues);
  int sum = 0;
#pragma omp teams distribute parallel for num_teams(2) reduction(+ : sum)
  for (int i = 0; i < 1000; ++i) sum += i;
  CHECK(sum == 499500, "teams distribute parallel for: %d", sum);
  CHECK(omp_get_num_teams() == 1 && omp_get_team_num() == 0, "after teams: %d of %d",
        omp_get_team_num(), omp_get_num_teams());
}

int main(void) {
  defaults();
  initial_threads();
  omp_set_max_active_levels(4);
  for (int round = 0; round < 5; ++round) {
    threads_var();
    schedule_var();
    flags();
    formats();
    allocators();
    host_teams();
  }
  pausing();
  return passed();
}
