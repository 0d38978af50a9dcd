// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workers that have homes (BOSK_WORKER_HOMES=on) are never trapped there: what a program sees of its threads'
// CPUs, and what the threads and processes that it starts get, are the CPUs that it was given.
//   homes masks               members, main, and threads and processes that they start have the given CPUs
//   homes restricted          the same with one CPU, as taskset gives it
//   homes chosen              a member that has bound itself stays bound, and where it is
//   homes threads             several initial threads at once
#include "check.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char** environ;
static char* self;
static cpu_set_t given;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/// The kernel's word on the calling kernel thread: neither libc's nor a borrowed identity's.
static void check_mask(const char* whose) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CHECK(syscall(SYS_sched_getaffinity, 0, sizeof mask, &mask) > 0, "%s: errno %d", whose, errno);
  CHECK(CPU_EQUAL(&mask, &given), "%s: may use %d CPUs, not the %d that were given", whose,
        CPU_COUNT(&mask), CPU_COUNT(&given));
}

static void* in_thread(void* whose) {
  check_mask(whose);
  return NULL;
}

static void start_children(const char* thread, const char* process) {
  pthread_t made;
  CHECK(pthread_create(&made, NULL, in_thread, (void*)thread) == 0, "no thread");
  pthread_join(made, NULL);
  char* arguments[] = {self, "child", NULL};
  pid_t pid;
  CHECK(posix_spawn(&pid, self, NULL, NULL, arguments, environ) == 0, "no process");
  int status = 1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  CHECK(status == 0, "%s has not the CPUs that were given: status %d", process, status);
}

/// Regions for at least `seconds`, so that workers have looked after their homes several times.
static void masks(double seconds, int members, int with_children) {
  const double end = now() + seconds;
  for (int round = 0; now() < end || round < 20; ++round) {
#pragma omp parallel num_threads(members)
    {
      check_mask("a member");
#pragma omp barrier
      check_mask("a member after a barrier");
#pragma omp parallel num_threads(2)
      check_mask("an inner member");
      if (with_children && round % 64 == omp_get_thread_num())
        start_children("a member's thread", "a member's child");
    }
    check_mask("main between regions");
    // Idle workers look around, and sleep.
    if (round % 16 == 0) usleep(2000);
  }
  if (with_children) start_children("main's thread", "main's child");
}

/// What the child was told: the CPUs as bits, of which this machine has at most 64 in these tests.
static int child(void) {
  const char* told = getenv("HOMES_GIVEN");
  CHECK(told, "nothing was told");
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  unsigned long long bits = 0;
  for (int cpu = 0; cpu < 64; ++cpu) bits |= (unsigned long long)CPU_ISSET(cpu, &mask) << cpu;
  return bits == strtoull(told, NULL, 16) ? 0 : 3;
}

static void tell_children(void) {
  unsigned long long bits = 0;
  for (int cpu = 0; cpu < 64; ++cpu) bits |= (unsigned long long)CPU_ISSET(cpu, &given) << cpu;
  char text[32];
  snprintf(text, sizeof text, "%llx", bits);
  setenv("HOMES_GIVEN", text, 1);
}

/// Member 1 binds itself to the last CPU, which is nobody's seat but its own at best.
static void chosen(void) {
  int first = 0;
  while (!CPU_ISSET(first, &given)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  const double end = now() + 0.4;
  int bound = 0;
  int kept = 0;
  while (now() < end || kept < 100) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 1) {
      cpu_set_t mask;
      CPU_ZERO(&mask);
      CHECK(pthread_getaffinity_np(pthread_self(), sizeof mask, &mask) == 0, "getaffinity");
      if (!bound) {
        bound = 1;
        CHECK(pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0, "setaffinity");
      } else {
        CHECK(CPU_EQUAL(&mask, &one), "the member's own binding is gone: %d CPUs",
              CPU_COUNT(&mask));
        ++kept;
      }
      unsigned cpu = 0;
      CHECK(syscall(SYS_getcpu, &cpu, NULL, NULL) == 0 && (int)cpu == first, "on CPU %u, not %d",
            cpu, first);
    }
    if (kept % 16 == 0) usleep(1000);
  }
}

static void* open_regions(void* ignored) {
  masks(0.3, 2, 0);
  return ignored;
}

static void threads(void) {
  pthread_t made[3];
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3; ++i)
      CHECK(pthread_create(&made[i], NULL, open_regions, NULL) == 0, "no thread");
    if (round == 1) masks(0.3, 2, 0);
    for (int i = 0; i < 3; ++i) pthread_join(made[i], NULL);
  }
}

int main(int argc, char** argv) {
  CHECK(argc == 2, "usage: homes masks|restricted|chosen|threads");
  self = argv[0];
  if (!strcmp(argv[1], "child")) return child();
  if (!strcmp(argv[1], "restricted")) {
    cpu_set_t one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof one, &one);
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &one) && seen++ > 0) CPU_CLR(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "setaffinity: errno %d", errno);
    char* arguments[] = {self, "masks", NULL};
    execv("/proc/self/exe", arguments);
    CHECK(0, "execv: errno %d", errno);
  }
  arm_watchdog(50);
  CPU_ZERO(&given);
  CHECK(sched_getaffinity(0, sizeof given, &given) == 0, "getaffinity: errno %d", errno);
  tell_children();
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  if (!strcmp(argv[1], "masks"))
    masks(0.4, 2, 1);
  else if (!strcmp(argv[1], "chosen"))
    chosen();
  else if (!strcmp(argv[1], "threads"))
    threads();
  else
    CHECK(0, "no mode %s", argv[1]);
  return passed();
}
