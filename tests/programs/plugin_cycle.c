// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An OpenMP plug-in that is loaded, used, unloaded, and loaded again. Built with -fopenmp the program
// itself keeps the runtime loaded; built with -DPLAIN and -fno-openmp only the plug-in asks for it, so
// dlclose must not unmap a runtime whose workers sleep in it (stock libgomp crashes there).
#include "check.h"

#include <dlfcn.h>
#include <link.h>
#ifndef PLAIN
#include <omp.h>
#endif

typedef int (*Run)(int, int);
typedef void (*CallBack)(int, void (*)(int));

static int called[64];

static void call_me(int thread) { __atomic_add_fetch(&called[thread], 1, __ATOMIC_ACQ_REL); }

static void one_cycle(const char* path, int round) {
  void* handle = dlopen(path, round % 2 ? RTLD_NOW : RTLD_LAZY | RTLD_LOCAL);
  CHECK(handle, "dlopen: %s", dlerror());
  Run run = (Run)dlsym(handle, "plugin_run");
  CallBack call_back = (CallBack)dlsym(handle, "plugin_call_back");
  CHECK(run && call_back, "the plug-in lacks a function");
  int threads = 2 + round % 3 * 3;
  for (int i = 0; i < 3; ++i) {
    int members = run(threads, round % 2);
    CHECK(members == threads, "round %d: plug-in ran %d members of %d", round, members, threads);
  }
  memset(called, 0, sizeof called);
  call_back(threads, call_me);
  for (int i = 0; i < threads; ++i)
    CHECK(called[i] == 1, "member %d called back %d times", i, called[i]);
  CHECK(dlclose(handle) == 0, "dlclose: %s", dlerror());
}

#ifdef PLAIN
static int find_runtime(struct dl_phdr_info* info, size_t size, void* found) {
  (void)size;
  if (strstr(info->dlpi_name, "libgomp")) *(int*)found = 1;
  return 0;
}
#endif

int main(void) {
#ifdef PLAIN
  int loaded = 0;
  dl_iterate_phdr(find_runtime, &loaded);
  CHECK(!loaded, "the program is linked with the runtime: the test would prove nothing");
#endif
  const char* folder = getenv("BOSK_TEST_DIR");
  CHECK(folder, "BOSK_TEST_DIR is not set");
  char path[4096];
  snprintf(path, sizeof path, "%s/libplugin_regions.so", folder);
  for (int round = 0; round < 40; ++round) {
#ifndef PLAIN
    int members = 0;
    if (round > 5)
#pragma omp parallel num_threads(1 + round % 8) reduction(+ : members)
      members++;
    CHECK(round <= 5 || members == 1 + round % 8, "%d members", members);
#endif
    one_cycle(path, round);
    // Give workers that sleep in unmapped code a chance to wake up there.
    usleep(2000);
  }
  return passed();
}
