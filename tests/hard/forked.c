// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Forks while another thread loads and unloads libraries, as interpreters do that import in one thread and start workers from another.
//   forked MODE
// What the child begins with: region | nested | tasks | texts | sleeps | names. Only before the latter three has its parent opened regions:
// libgomp has none for the child otherwise.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hard.h"

static int is_done;

/// Libraries that nobody here needs, and one that brings C++ along: they come and go.
static void* load_and_unload(void* argument) {
  static const char* const kLibraries[] = {"libz.so.1", "libresolv.so.2", "libnss_files.so.2",
                                           "libBrokenLocale.so.1", "libtbb.so.12"};
  (void)argument;
  int loaded = 0;
  for (int i = 0; !__atomic_load_n(&is_done, __ATOMIC_RELAXED); ++i) {
    void* handle = dlopen(kLibraries[i % 5], RTLD_NOW);
    loaded += handle != NULL;
    if (handle != NULL) dlclose(handle);
  }
  CHECK(loaded > 0, "none of the libraries is there%s", "");
  return NULL;
}

static void region(void) {
  int members = 0, sum = 0;
#pragma omp parallel reduction(+ : sum)
  {
#pragma omp single
    members = omp_get_num_threads();
    sum += omp_get_thread_num() + 1;
  }
  CHECK(sum == members * (members + 1) / 2, "%d of %d members", sum, members);
}

static void nested(void) {
  int sum = 0;
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) reduction(+ : sum)
#pragma omp parallel num_threads(2) reduction(+ : sum)
  sum += 1;
  CHECK(sum == 4, "%d members", sum);
}

static void tasks(void) {
  int sum = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskloop reduction(+ : sum) grainsize(1)
  for (int i = 0; i < 32; ++i) sum += i;
  CHECK(sum == 496, "sum %d", sum);
}

static void texts(void) {
  struct in_addr address;
  address.s_addr = htonl(0x7f000001);
  CHECK(is(inet_ntoa(address), "127.0.0.1"), "%s", inet_ntoa(address));
  CHECK(strlen(strerror(ENOENT)) > 4, "%s", strerror(ENOENT));
  CHECK(strlen(strsignal(SIGHUP)) > 4, "%s", strsignal(SIGHUP));
}

static void sleeps(void) {
  const struct timespec time = {0, 1000};
  CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL) == 0, "errno %d", errno);
  CHECK(nanosleep(&time, NULL) == 0, "errno %d", errno);
}

#ifdef WITH_NAMES
static void names(void) {
  char name[16];
  CHECK(pthread_getname_np(pthread_self(), name, sizeof name) == 0, "%s", "no name");
  struct sched_param parameters;
  int policy = -1;
  CHECK(pthread_getschedparam(pthread_self(), &policy, &parameters) == 0, "policy %d", policy);
}
#endif

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
    int after_region;
  } kModes[] = {{"region", region, 0}, {"nested", nested, 0}, {"tasks", tasks, 0},
                {"texts", texts, 1},   {"sleeps", sleeps, 1},
#ifdef WITH_NAMES
                {"names", names, 1}
#endif
  };
  enum { kChildren = 150 };
  void (*run)(void) = NULL;
  int after_region = 0;
  for (size_t i = 0; argc > 1 && i < sizeof kModes / sizeof *kModes; ++i)
    if (is(argv[1], kModes[i].name)) {
      run = kModes[i].run;
      after_region = kModes[i].after_region;
    }
  if (run == NULL) no_such_mode();
  pthread_t loader;
  CHECK(pthread_create(&loader, NULL, load_and_unload, NULL) == 0, "errno %d", errno);
  for (int i = 0; i < kChildren; ++i) {
    if (i == kChildren / 2 && after_region) region();
    const pid_t child = fork();
    if (child == 0) {
      // The guard's deadline is the parent's.
      alarm(20);
      run();
      _exit(0);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child %d: status %#x",
          i, status);
    if (status != 0) break;
  }
  __atomic_store_n(&is_done, 1, __ATOMIC_RELAXED);
  pthread_join(loader, NULL);
  puts("ok");
  return 0;
}
