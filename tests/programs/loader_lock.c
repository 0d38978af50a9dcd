// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members take the dynamic linker's lock, all at once and as the first thing that a process does: whoever
// holds it may be preempted, the others wait for it in the kernel, and the library makes threads meanwhile,
// for which libc takes the same lock. Each child is such a process.
#include "check.h"

#include <dlfcn.h>
#include <omp.h>
#include <sys/wait.h>

static void child(int threads) {
  arm_watchdog(25);  // not inherited
  int missing = 0, tasks = 0;
#pragma omp parallel num_threads(threads) reduction(+ : missing)
  {
    char name[40];
    for (int i = 0; i < 30; ++i) {
      snprintf(name, sizeof name, "bosk_there_is_no_%d_%d", omp_get_thread_num(), i);
      missing += dlsym(RTLD_DEFAULT, name) == NULL;
      missing += dlopen(name, RTLD_LAZY | RTLD_NOLOAD) == NULL;
    }
#pragma omp task shared(tasks)
    {
#pragma omp atomic
      tasks++;
    }
#pragma omp taskwait
  }
  CHECK(missing == 60 * threads && tasks == threads, "%d names not found, %d tasks", missing,
        tasks);
  _exit(0);
}

int main(void) {
  for (int round = 0; round < 20; ++round) {
    fflush(stdout);
    const pid_t pid = fork();
    CHECK(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) child(3 + round % 6);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) CHECK(errno == EINTR, "waitpid: %s", strerror(errno));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "round %d: status %#x", round, status);
  }
  return passed();
}
