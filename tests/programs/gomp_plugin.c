// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What libgomp offers to plug-ins of accelerators, called by a program: gomp_plugin MODE. Modes whose
// name begins with "no-" end in an error; the manifest says in which words.
#include "check.h"

#include <dlfcn.h>

#include <acc_prof.h>
#include <stdint.h>

void* GOMP_PLUGIN_malloc(size_t);
void* GOMP_PLUGIN_malloc_cleared(size_t);
void* GOMP_PLUGIN_realloc(void*, size_t);
void GOMP_PLUGIN_debug(int, const char*, ...);
void GOMP_PLUGIN_error(const char*, ...);
void GOMP_PLUGIN_fatal(const char*, ...);
unsigned GOMP_PLUGIN_acc_default_dim(unsigned);
void* GOMP_PLUGIN_acc_thread(void);
void* GOMP_PLUGIN_goacc_thread(void);
void GOMP_PLUGIN_async_unmap_vars(void*, int);
void GOMP_PLUGIN_target_task_completion(void*);
void GOMP_PLUGIN_goacc_profiling_dispatch(acc_prof_info*, acc_event_info*, acc_api_info*);

// AddressSanitizer ends the program instead of returning null, unless it is told here.
const char* __asan_default_options(void);
const char* __asan_default_options(void) { return "allocator_may_return_null=1"; }

static void memory(void) {
  unsigned char* block = GOMP_PLUGIN_malloc(100);
  memset(block, 7, 100);
  block = GOMP_PLUGIN_realloc(block, 5000);
  for (int i = 0; i < 100; ++i) CHECK(block[i] == 7, "byte %d is %d", i, block[i]);
  // Memory that was not zero.
  free(block);
  block = GOMP_PLUGIN_malloc_cleared(5000);
  for (int i = 0; i < 5000; ++i) CHECK(block[i] == 0, "byte %d is %d", i, block[i]);
  free(block);
  free(GOMP_PLUGIN_realloc(NULL, 10));
}

static void messages(void) {
  GOMP_PLUGIN_debug(0, "said %s%c", "if asked", '\n');
  GOMP_PLUGIN_error("%d things are wrong", 3);
  puts("still here");
}

static void dimensions(char** wanted) {
  for (unsigned i = 0; i < 3; ++i) {
    const unsigned found = GOMP_PLUGIN_acc_default_dim(i);
    CHECK(found == strtoul(wanted[i], NULL, 10), "dimension %u is %u", i, found);
  }
}

static int heard;
static void hear(acc_prof_info* prof, acc_event_info* event, acc_api_info* api) {
  CHECK(prof->event_type == acc_ev_enqueue_launch_start, "event %d", (int)prof->event_type);
  CHECK(event->launch_event.num_gangs == 12 && api->vendor == 34, "another event");
  ++heard;
}

static void events(void) {
  // Plug-ins are called by threads that have a device.
  acc_init(acc_device_host);
  acc_prof_register(acc_ev_enqueue_launch_start, hear, acc_reg);
  acc_prof_info prof = {.event_type = acc_ev_enqueue_launch_start};
  acc_event_info event = {
      .launch_event = {.event_type = acc_ev_enqueue_launch_start, .num_gangs = 12}};
  acc_api_info api = {.vendor = 34};
  GOMP_PLUGIN_goacc_profiling_dispatch(&prof, &event, &api);
  CHECK(heard == 1, "heard %d times", heard);
}

/// A name that GCC 12's libgomp has not.
static void call_newer(const char* name, const char* node) {
  void (*found)(void) = NULL;
  *(void**)&found = dlvsym(RTLD_DEFAULT, name, node);
  CHECK(found != NULL, "no %s@%s", name, node);
  found();
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "memory";
#define MODE(name, call)         \
  if (strcmp(mode, name) == 0) { \
    call;                        \
  } else
  MODE("memory", memory())
  MODE("messages", messages())
  MODE("dimensions", dimensions(argv + 2))
  MODE("events", events())
  MODE("thread", CHECK(!GOMP_PLUGIN_acc_thread() && !GOMP_PLUGIN_goacc_thread(), "a thread"))
  MODE("no-memory", CHECK(!GOMP_PLUGIN_malloc(SIZE_MAX / 2), "memory"))
  MODE("no-fatal", GOMP_PLUGIN_fatal("%s is too much", "this"))
  MODE("no-dimension", CHECK(GOMP_PLUGIN_acc_default_dim(3) == 0, "a dimension"))
  MODE("no-unmap", GOMP_PLUGIN_async_unmap_vars(NULL, 0))
  MODE("no-reverse", call_newer("GOMP_PLUGIN_target_rev", "GOMP_PLUGIN_1.4"))
  MODE("no-task", GOMP_PLUGIN_target_task_completion(NULL))
  CHECK(0, "unknown mode %s", mode);
  return passed();
}
