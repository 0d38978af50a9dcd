// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Several OpenMP objects in one process share one runtime: two plug-ins, and the program where it uses
// OpenMP itself (-DPLAIN with -fno-openmp: it does not).
//   plugins_together together|deepbind|thread|static-tls
#include "check.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#ifndef PLAIN
#include <omp.h>
#endif

struct View {
  int level, in_parallel, thread, threads, max_threads, members;
};
typedef struct View (*InnerView)(int);
typedef void (*InnerCritical)(int, void (*)(void));
typedef int (*Run)(int, int);
typedef void (*CallBack)(int, void (*)(int));

static InnerView inner_view;
static InnerCritical inner_critical;
static Run run;
static CallBack call_back;

static int count_runtime(struct dl_phdr_info* info, size_t size, void* found) {
  (void)size;
  const char* slash = strrchr(info->dlpi_name, '/');
  if (slash && !strncmp(slash + 1, "libgomp", 7)) ++*(int*)found;
  return 0;
}

static int runtimes(void) {
  int found = 0;
  dl_iterate_phdr(count_runtime, &found);
  return found;
}

static void* load(const char* name, int flags) {
  char path[4096];
  snprintf(path, sizeof path, "%s/lib%s.so", getenv("BOSK_TEST_DIR"), name);
  void* handle = dlopen(path, RTLD_NOW | flags);
  CHECK(handle, "dlopen: %s", dlerror());
  return handle;
}

static void load_both(int flags) {
  void* one = load("plugin_regions", flags);
  void* other = load("plugin_inner", flags);
  run = (Run)dlsym(one, "plugin_run");
  call_back = (CallBack)dlsym(one, "plugin_call_back");
  inner_view = (InnerView)dlsym(other, "inner_view");
  inner_critical = (InnerCritical)dlsym(other, "inner_critical");
  CHECK(run && call_back && inner_view && inner_critical, "a plug-in lacks a function");
  CHECK(runtimes() == 1, "%d libgomps are loaded", runtimes());
}

static int threads_around;

/// In a region that the first plug-in opened, called from it.
static void look_from_inside(int thread) {
  struct View view = inner_view(3);
  CHECK(view.level == 1 && view.in_parallel, "level %d, in_parallel %d", view.level,
        view.in_parallel);
  CHECK(view.thread == thread && view.threads == threads_around, "thread %d of %d, not %d of %d",
        view.thread, view.threads, thread, threads_around);
  CHECK(view.members == 1 || view.members == 3, "%d members", view.members);
}

static long unprotected;

static void count_up(void) {
  long seen = unprotected;
  for (volatile int i = 0; i < 50; ++i) {
  }
  unprotected = seen + 1;
}

static int critical_calls;

static void critical_from_inside(int thread) {
  (void)thread;
  inner_critical(2, count_up);
  __atomic_add_fetch(&critical_calls, 1, __ATOMIC_RELAXED);
}

static void use_both(void) {
  for (int round = 0; round < 20; ++round) {
    threads_around = 2 + round % 3 * 3;
    CHECK(run(threads_around, round % 2) == threads_around, "a smaller team");
    call_back(threads_around, look_from_inside);
    struct View outside = inner_view(4);
    CHECK(outside.level == 0 && !outside.in_parallel && outside.members == 4,
          "level %d, %d members outside", outside.level, outside.members);
  }
  unprotected = 0;
  critical_calls = 0;
  for (int round = 0; round < 50; ++round) call_back(4, critical_from_inside);
  CHECK(critical_calls == 200, "%d calls", critical_calls);
  // One or two members each, as nested regions are on or off.
  CHECK(unprotected == 200 || unprotected == 400, "critical regions met: %ld", unprotected);
#ifndef PLAIN
  omp_set_num_threads(3);
  struct View view = inner_view(2);
  CHECK(view.max_threads == 3, "the plug-in has settings of its own: %d", view.max_threads);
#pragma omp parallel num_threads(5)
  {
    const struct View mine = inner_view(2);
    CHECK(mine.level == 1 && mine.thread == omp_get_thread_num() && mine.threads == 5,
          "thread %d of %d", mine.thread, mine.threads);
  }
#endif
}

static void* loader(void* unused) {
  (void)unused;
  load_both(RTLD_LOCAL);
  use_both();
  return NULL;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  CHECK(getenv("BOSK_TEST_DIR"), "BOSK_TEST_DIR is not set");
#ifdef PLAIN
  CHECK(runtimes() == 0, "the program is linked with the runtime: the test would prove nothing");
#endif
  if (!strcmp(mode, "together")) {
    load_both(RTLD_LOCAL);
    use_both();
  } else if (!strcmp(mode, "deepbind")) {
    load_both(RTLD_LOCAL | RTLD_DEEPBIND);
    use_both();
  } else if (!strcmp(mode, "thread")) {
    // Loaded and used first by a thread that ends; then by main and by others.
    pthread_t handles[4];
    pthread_create(&handles[0], NULL, loader, NULL);
    pthread_join(handles[0], NULL);
    use_both();
  } else if (!strcmp(mode, "static-tls")) {
    // Most of it is gone when the runtime comes.
    char* (*take)(void) = (char* (*)(void))dlsym(load("plugin_static_tls", 0), "take_static_tls");
    CHECK(take, "the plug-in lacks a function");
    memset(take(), 1, 1);
    load_both(RTLD_LOCAL);
    use_both();
  } else {
    fail_at(__LINE__, "unknown mode %s", mode);
  }
  return passed();
}
