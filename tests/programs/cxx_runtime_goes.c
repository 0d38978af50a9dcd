// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A C program one of whose threads loads and unloads a C++ run-time, as libraries with plug-ins do, while others run
// tasks: whoever looks for one must not keep what goes. Children, because what was found once is kept.
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

enum { kChildren = 50, kLoads = 10 };

static int loaded_all;

static void* load_and_unload(void* unused) {
  const char* folder = getenv("BOSK_TEST_DIR");
  CHECK(folder, "BOSK_TEST_DIR is not set");
  char path[4096];
  snprintf(path, sizeof path, "%s/libplugin_cxx_globals.so", folder);
  for (int i = 0; i < kLoads; ++i) {
    void* handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    CHECK(handle, "dlopen: %s", dlerror());
    CHECK(dlclose(handle) == 0, "dlclose: %s", dlerror());
  }
  __atomic_store_n(&loaded_all, 1, __ATOMIC_RELEASE);
  return unused;
}

static void* one_region(void* unused) {
  int sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
  {
#pragma omp task shared(sum)
    sum += 1;
#pragma omp taskwait
  }
  CHECK(sum == 2, "%d tasks ran", sum);
  return unused;
}

/// A thread's first region is where it looks.
static void* run_tasks(void* unused) {
  for (int after = 0; after < 3; after += __atomic_load_n(&loaded_all, __ATOMIC_ACQUIRE)) {
    pthread_t brief;
    CHECK(pthread_create(&brief, NULL, one_region, NULL) == 0, "pthread_create failed");
    pthread_join(brief, NULL);
  }
  return unused;
}

int main(void) {
  for (int round = 0; round < kChildren; ++round) {
    pid_t child = fork();
    CHECK(child >= 0, "fork failed");
    if (child == 0) {
      arm_watchdog(60);
      one_region(NULL);
      pthread_t loader, runner;
      CHECK(pthread_create(&loader, NULL, load_and_unload, NULL) == 0, "pthread_create failed");
      CHECK(pthread_create(&runner, NULL, run_tasks, NULL) == 0, "pthread_create failed");
      pthread_join(runner, NULL);
      pthread_join(loader, NULL);
      _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "child %d: status %x", round, status);
  }
  return passed();
}
