// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What homes of workers cost beside others: regions of all threads that compute, while nobody else does
// (alone), while a second process does the same (two), or while a stranger computes on the last CPU and may
// go nowhere else (foreign). us per region, over half a second: what the kernel and the workers do about it
// takes them some 20 ms each time.
#include "bench.h"

#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kWorkSteps = 100000 };

// As in helping.c: a chain of dependent multiplications, some 120 us.
__attribute__((noinline)) static void work(long steps) {
  unsigned long x = (unsigned long)steps;
  for (long i = 0; i < steps; i++) {
    x = x * 6364136223846793005UL + 1;
    __asm__ volatile("" : "+r"(x));
  }
}

static void regions_until(double end) {
  while (now_ns() < end) {
#pragma omp parallel
    work(kWorkSteps);
  }
}

static double measure(void) {
  regions_until(now_ns() + 4 * bench_warm_ns());
  const double start = now_ns();
  long count = 0;
  while (now_ns() - start < 500e6) {
#pragma omp parallel
    work(kWorkSteps);
    ++count;
  }
  return (now_ns() - start) / (double)count;
}

// The other process; it ends with this one.
static pid_t start_other(char** argv, const char* what) {
  const pid_t pid = fork();
  if (pid < 0) bench_fail("no second process");
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  char* arguments[] = {argv[0], (char*)what, NULL};
  execv("/proc/self/exe", arguments);
  _exit(127);
}

static void bind_to_last_cpu(void) {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) bench_fail("no affinity mask");
  int last = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &mask)) last = cpu;
  CPU_ZERO(&mask);
  CPU_SET(last, &mask);
  if (sched_setaffinity(0, sizeof mask, &mask) != 0) bench_fail("cannot bind the stranger");
}

int main(int argc, char** argv) {
  if (argc != 2) bench_fail("usage: binding alone|two|foreign");
  const double for_ever = now_ns() + 30e9;
  if (!strcmp(argv[1], "other")) {
    regions_until(for_ever);
    return 0;
  }
  if (!strcmp(argv[1], "stranger")) {
    bind_to_last_cpu();
    while (now_ns() < for_ever) work(kWorkSteps);
    return 0;
  }
  pid_t other = 0;
  if (!strcmp(argv[1], "two"))
    other = start_other(argv, "other");
  else if (!strcmp(argv[1], "foreign"))
    other = start_other(argv, "stranger");
  else if (strcmp(argv[1], "alone") != 0)
    bench_fail("usage: binding alone|two|foreign");
  const double result = measure();
  if (other != 0) {
    int status;
    if (waitpid(other, &status, WNOHANG) != 0) bench_fail("the other process has ended");
    kill(other, SIGKILL);
    waitpid(other, &status, 0);
  }
  bench_print(argv[1], result / 1e3, "us");
  return 0;
}
