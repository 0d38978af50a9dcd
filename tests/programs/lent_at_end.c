// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A thread that is blocked in a system call lends its worker to a stand-in. It may end, or its pool may,
// before it has anything to do with the scheduler again: the role comes home first, and no thread is left.
#include "check.h"

#include <dirent.h>
#include <omp.h>
#include <pthread.h>
#include <time.h>

static int count_tasks(void) {
  DIR* folder = opendir("/proc/self/task");
  int count = 0;
  CHECK(folder, "no /proc/self/task");
  for (struct dirent* entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

static void nap(long milliseconds) {
  struct timespec time = {0, milliseconds * 1000000};
  while (nanosleep(&time, &time) != 0) continue;
}

static void nested(int size) {
  int members = 0;
#pragma omp parallel num_threads(size)
  {
#pragma omp barrier
#pragma omp atomic
    members++;
#pragma omp barrier
  }
  CHECK(members == size, "%d members of %d", members, size);
}

/// Flat, so that nobody waits in the scheduler: member 1 is blocked in the kernel while member 0 has
/// threads for two workers, and when it wakes it goes straight to the end of the region, which it is the
/// last to reach, and of its pool.
static void* owner(void* argument) {
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
  {
    nested(5);
#pragma omp barrier
    if (omp_get_thread_num() == 1)
      nap(3);
    else
      for (int i = 0; i < 4; ++i) nested(6);
  }
  return argument;
}

enum { kRounds = 100, kOwners = 6 };  // more than CPUs: whoever ends may lose its CPU at any point

int main(void) {
  arm_watchdog(120);
  for (int round = 0; round < kRounds; ++round) {
    pthread_t handles[kOwners];
    for (int i = 0; i < kOwners; ++i)
      CHECK(pthread_create(&handles[i], NULL, owner, NULL) == 0, "pthread_create failed");
    for (int i = 0; i < kOwners; ++i)
      CHECK(pthread_join(handles[i], NULL) == 0, "pthread_join failed");
  }
#pragma omp parallel num_threads(2)
  CHECK(omp_get_num_threads() == 2, "%d threads", omp_get_num_threads());
  CHECK(omp_pause_resource_all(omp_pause_hard) == 0, "the pause was refused");
  // The kernel takes a thread off the list a moment after it has been joined.
  while (count_tasks() != 1) sched_yield();
  puts("ok");
}
