// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One thread loads and unloads libraries (with TLS) while others open regions, all on one CPU: whatever
// the loader locks, a preempted thread may hold it, and the runtime must not need it then.
#include "check.h"

#include <dlfcn.h>
#include <link.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>

static char tls_path[4096], regions_path[4096];
static int stop, loads;

static int count_object(struct dl_phdr_info* info, size_t size, void* count) {
  (void)info;
  (void)size;
  ++*(int*)count;
  return 0;
}

static void load_and_unload(int round) {
  void* handle = dlopen(tls_path, RTLD_NOW | RTLD_LOCAL);
  CHECK(handle, "dlopen: %s", dlerror());
  int (*next)(void) = (int (*)(void))dlsym(handle, "plugin_next");
  CHECK(next, "dlsym: %s", dlerror());
  int first = next();
  CHECK(first >= 32, "plug-in counter starts at %d", first);
  CHECK(next() == first + 1, "plug-in counter jumped");
  int objects = 0;
  dl_iterate_phdr(count_object, &objects);
  CHECK(objects > 2, "dl_iterate_phdr saw %d objects", objects);
  if (round % 4 == 0) {
    void* other = dlopen(regions_path, RTLD_NOW | RTLD_LOCAL);
    CHECK(other, "dlopen: %s", dlerror());
    dlclose(other);
  }
  CHECK(dlclose(handle) == 0, "dlclose: %s", dlerror());
}

static void* loader(void* unused) {
  (void)unused;
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    load_and_unload(loads);
    __atomic_add_fetch(&loads, 1, __ATOMIC_ACQ_REL);
  }
  return NULL;
}

static void regions(int round) {
  static const int sizes[] = {2, 8, 3, 16};
  int threads = sizes[round % 4], sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  {
    sum++;
#pragma omp barrier
    if (round % 2) {
#pragma omp parallel num_threads(2) reduction(+ : sum)
      sum++;
    }
  }
  int expected = round % 2 ? 3 * threads : threads;
  CHECK(sum == expected, "round %d: %d members, expected %d", round, sum, expected);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "pthread";
  cpu_set_t whole, one;
  CHECK(sched_getaffinity(0, sizeof whole, &whole) == 0, "sched_getaffinity: errno %d", errno);
  if (CPU_COUNT(&whole) > 1) {
    // The runtime may look at the mask when it is loaded: start again with the narrow one.
    int cpu = 0;
    while (!CPU_ISSET(cpu, &whole)) ++cpu;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity: errno %d", errno);
    execv("/proc/self/exe", argv);
    fail_at(__LINE__, "execv: errno %d", errno);
  }
  const char* folder = getenv("BOSK_TEST_DIR");
  CHECK(folder, "BOSK_TEST_DIR is not set");
  snprintf(tls_path, sizeof tls_path, "%s/libplugin_tls.so", folder);
  snprintf(regions_path, sizeof regions_path, "%s/libplugin_regions.so", folder);
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  if (!strcmp(mode, "pthread")) {
    pthread_t handle;
    CHECK(pthread_create(&handle, NULL, loader, NULL) == 0, "pthread_create failed");
    for (int round = 0; round < 300 || __atomic_load_n(&loads, __ATOMIC_ACQUIRE) < 100; ++round)
      regions(round);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(handle, NULL);
  } else {
    // The loaders are team members themselves; the others open nested teams.
    for (int round = 0; round < 20; ++round) {
#pragma omp parallel num_threads(6)
      {
        int me = omp_get_thread_num();
        for (int i = 0; i < 8; ++i) {
          if (me % 3 == 0)
            load_and_unload(i);
          else
            regions(i * 6 + me);
        }
      }
    }
  }
  return passed();
}
