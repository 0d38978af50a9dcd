// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The profiling interface of OpenACC: which events the host's constructs make, what is in them, who
// hears them in which order, and how that is switched on and off. acc_profiling MODE
#include "check.h"

#include <acc_prof.h>
#include <pthread.h>

static float a[8], b[8];
static int never;

// What was heard, as text: "name:event " for each call.
static char heard[1024];
static size_t length;

static void note(const char* name, int event) {
  length += (size_t)snprintf(heard + length, sizeof heard - length, "%s%d ", name, event);
}
#define HEARD(wanted)                                                                   \
  do {                                                                                  \
    CHECK(strcmp(heard, wanted) == 0, "heard \"%s\" instead of \"%s\"", heard, wanted); \
    heard[0] = '\0';                                                                    \
    length = 0;                                                                         \
  } while (0)

#define LISTENER(name)                                                              \
  static void name(acc_prof_info* prof, acc_event_info* event, acc_api_info* api) { \
    CHECK(prof->event_type == event->event_type, "two events in one");              \
    CHECK(prof->device_type == api->device_type, "two devices in one");             \
    note(#name, (int)prof->event_type);                                             \
  }
LISTENER(A)
LISTENER(B)
LISTENER(C)

static void compute(void) {
#pragma acc parallel copy(a)
  a[0] += 1;
}

static void in_thread(void (*what)(void)) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, (void* (*)(void*))what, NULL) == 0, "no thread");
  CHECK(pthread_join(thread, NULL) == 0, "no join");
}

// ---- Which events, and what is in them.

static acc_construct_t expected_construct;
static long expected_async;
static acc_device_t expected_type;
static int expected_implicit;
static long starts, ends;

static void inspect(acc_prof_info* prof, acc_event_info* event, acc_api_info* api) {
  const int type = (int)prof->event_type;
  note("", type);
  CHECK(prof->valid_bytes == _ACC_PROF_INFO_VALID_BYTES, "%d valid bytes", prof->valid_bytes);
  CHECK(prof->version == _ACC_PROF_INFO_VERSION, "version %d", prof->version);
  CHECK(prof->device_type == expected_type, "event %d: device %d", type, (int)prof->device_type);
  CHECK(prof->device_number == 0, "device number %d", prof->device_number);
  CHECK(prof->async == expected_async && prof->async_queue == expected_async, "event %d: queue %ld",
        type, (long)prof->async);
  CHECK(!prof->src_file && !prof->func_name, "names from nowhere");
  CHECK(prof->line_no == -1 && prof->end_line_no == -1 && prof->func_line_no == -1 &&
            prof->func_end_line_no == -1,
        "lines from nowhere");
  CHECK(event->other_event.parent_construct == expected_construct, "event %d: construct %d", type,
        (int)event->other_event.parent_construct);
  CHECK(event->other_event.implicit == expected_implicit, "event %d: implicit %d", type,
        event->other_event.implicit);
  CHECK(event->other_event.valid_bytes == _ACC_OTHER_EVENT_INFO_VALID_BYTES, "%d valid bytes",
        event->other_event.valid_bytes);
  CHECK(api->valid_bytes == _ACC_API_INFO_VALID_BYTES && api->device_api == acc_device_api_none,
        "another interface");
  CHECK(api->device_type == expected_type && api->vendor == -1, "another device");
  CHECK(!api->device_handle && !api->context_handle && !api->async_handle, "handles from nowhere");
  // What a tool leaves at the start it finds at the end.
  const int is_end = type == acc_ev_device_init_end || type == acc_ev_enter_data_end ||
                     type == acc_ev_exit_data_end || type == acc_ev_update_end ||
                     type == acc_ev_compute_construct_end;
  if (is_end) {
    CHECK(event->other_event.tool_info == &starts, "event %d lost what its start left", type);
    ++ends;
  } else {
    CHECK(!event->other_event.tool_info, "event %d has another's data", type);
    event->other_event.tool_info = &starts;
    ++starts;
  }
}

static void expect(acc_construct_t construct, long async) {
  expected_construct = construct;
  expected_async = async;
  expected_type = acc_device_host;
  expected_implicit = 0;
}

static void events(void) {
  for (int event = acc_ev_none + 1; event < acc_ev_last; ++event) {
    acc_prof_register((acc_event_t)event, inspect, acc_reg);
  }
  // The first that needs a device brings it up.
  expect(acc_construct_parallel, acc_async_sync);
  expected_type = acc_device_default;
  expected_implicit = 1;
  CHECK(acc_is_present(a, sizeof a), "not present");
  HEARD("1 2 ");

  expect(acc_construct_parallel, acc_async_sync);
  compute();
#pragma acc kernels loop async(3) wait(5) copy(a)
  for (int i = 0; i < 8; ++i) a[i] += 1;
#pragma acc serial if (never) copy(a)
  a[0] += 1;
  HEARD("16 17 16 17 16 17 ");

  expect(acc_construct_data, acc_async_sync);
#pragma acc data copy(a)
  {
    HEARD("10 11 ");
    expect(acc_construct_host_data, acc_async_sync);
#pragma acc host_data use_device(a)
    {
      HEARD("10 11 ");
      a[0] += 1;
      expect(acc_construct_data, acc_async_sync);
    }
    HEARD("12 13 ");
  }
  HEARD("12 13 ");

  expect(acc_construct_enter_data, 2);
#pragma acc enter data copyin(b) async(2)
  HEARD("10 11 ");
  expect(acc_construct_exit_data, acc_async_noval);
#pragma acc exit data delete (b)async finalize
  HEARD("12 13 ");
  expect(acc_construct_update, acc_async_sync);
#pragma acc update self(a) if (never)
  HEARD("14 15 ");
#pragma acc wait
#pragma acc wait(1) async
  // The routines make no events on the host.
  acc_copyin(a, sizeof a);
  acc_update_self(a, sizeof a);
  acc_delete(a, sizeof a);
  acc_free(acc_malloc(8));
  acc_wait_all();
  acc_set_device_num(0, acc_device_host);
  acc_shutdown(acc_device_host);
  HEARD("");

  expect(acc_construct_runtime_api, acc_async_sync);
  acc_init(acc_device_host);
  HEARD("1 2 ");
  acc_shutdown(acc_device_host);
  expected_type = acc_device_default;
  acc_init(acc_device_default);
  HEARD("1 2 ");
  CHECK(starts == ends && starts == 13, "%ld starts, %ld ends", starts, ends);
}

// ---- Who, in which order.

static void order(void) {
  acc_init(acc_device_host);
  const acc_event_t start = acc_ev_compute_construct_start, end = acc_ev_compute_construct_end;
  acc_prof_register(start, A, acc_reg);
  acc_prof_register(start, B, acc_reg);
  acc_prof_register(start, C, acc_reg);
  acc_prof_register(end, A, acc_reg);
  acc_prof_register(end, B, acc_reg);
  acc_prof_register(end, C, acc_reg);
  compute();
  HEARD("A16 B16 C16 C17 B17 A17 ");
  // Registered twice is heard once, and needs to be taken back twice.
  acc_prof_register(start, A, acc_reg);
  compute();
  HEARD("A16 B16 C16 C17 B17 A17 ");
  acc_prof_unregister(start, A, acc_reg);
  compute();
  HEARD("A16 B16 C16 C17 B17 A17 ");
  acc_prof_unregister(start, A, acc_reg);
  acc_prof_unregister(start, A, acc_reg);
  compute();
  HEARD("B16 C16 C17 B17 A17 ");
  // Who comes back is the last.
  acc_prof_register(start, A, acc_reg);
  compute();
  HEARD("B16 C16 A16 C17 B17 A17 ");
  // Nonsense changes nothing.
  acc_prof_register((acc_event_t)-1, A, acc_reg);
  acc_prof_register(acc_ev_last, A, acc_reg);
  acc_prof_register(start, B, (acc_register_t)7);
  acc_prof_unregister(start, B, (acc_register_t)-1);
  acc_prof_unregister(start, inspect, acc_reg);
  compute();
  HEARD("B16 C16 A16 C17 B17 A17 ");
  CHECK(!acc_prof_lookup("acc_prof_register") && !acc_prof_lookup(NULL), "a query from nowhere");
}

// ---- Switches.

static void mute_this_thread(void) {
  acc_prof_unregister(acc_ev_none, NULL, acc_toggle_per_thread);
  compute();
  HEARD("");
  acc_prof_register(acc_ev_none, NULL, acc_toggle_per_thread);
  compute();
  HEARD("A16 A17 ");
  acc_prof_unregister(acc_ev_none, NULL, acc_toggle_per_thread);
}

static void switches(void) {
  acc_init(acc_device_host);
  const acc_event_t start = acc_ev_compute_construct_start, end = acc_ev_compute_construct_end;
  acc_prof_register(start, A, acc_reg);
  acc_prof_register(end, A, acc_reg);
  // One callback of one event.
  acc_prof_unregister(start, A, acc_toggle);
  compute();
  HEARD("A17 ");
  acc_prof_register(start, A, acc_reg);
  compute();
  HEARD("A17 ");
  acc_prof_register(start, A, acc_toggle);
  compute();
  HEARD("A16 A17 ");
  acc_prof_unregister(start, A, acc_reg);
  // One event.
  acc_prof_unregister(end, NULL, acc_toggle);
  compute();
  HEARD("A16 ");
  acc_prof_register(end, NULL, acc_toggle);
  // All.
  acc_prof_unregister(acc_ev_none, NULL, acc_toggle);
  acc_prof_register(end, B, acc_reg);
  compute();
  HEARD("");
  acc_prof_register(acc_ev_none, NULL, acc_toggle);
  acc_prof_unregister(end, B, acc_reg);
  compute();
  HEARD("A16 A17 ");
  // One thread.
  in_thread(mute_this_thread);
  compute();
  HEARD("A16 A17 ");
  acc_prof_unregister(acc_ev_none, NULL, acc_toggle_per_thread);
  compute();
  HEARD("");
  in_thread(compute);
  HEARD("A16 A17 ");
  // There is no such switch for one event or one callback.
  acc_prof_register(start, NULL, acc_toggle_per_thread);
  acc_prof_register(start, A, acc_toggle_per_thread);
  compute();
  HEARD("");
  // A shutdown ends it.
  acc_shutdown(acc_device_host);
  compute();
  HEARD("A16 A17 ");
}

// ---- What callbacks may do; libgomp 12 hangs or aborts here, for it holds a lock meanwhile.

static void join_in(acc_prof_info* prof, acc_event_info* event, acc_api_info* api) {
  (void)event;
  (void)api;
  note("join", (int)prof->event_type);
  acc_prof_register(acc_ev_compute_construct_end, B, acc_reg);
  acc_prof_register(acc_ev_compute_construct_start, C, acc_reg);
  acc_prof_unregister(acc_ev_compute_construct_start, join_in, acc_reg);
  CHECK(acc_get_device_type() == acc_device_host && acc_is_present(a, 4), "another device");
  CHECK(acc_async_test(1), "a queue that is not empty");
  // Its own constructs are not events.
  compute();
}

static void callbacks(void) {
  acc_prof_register(acc_ev_compute_construct_start, A, acc_reg);
  acc_prof_register(acc_ev_compute_construct_start, join_in, acc_reg);
  compute();
  // Who registers while an event is told hears of the next one.
  HEARD("A16 join16 B17 ");
  compute();
  HEARD("A16 C16 B17 ");
  CHECK(a[0] == 3, "%g constructs ran", (double)a[0]);
  acc_prof_register(acc_ev_compute_construct_start, NULL, acc_reg);
  compute();
  HEARD("A16 C16 B17 ");
}

// ---- While a device comes up, the thread has none.

static void look(acc_prof_info* prof, acc_event_info* event, acc_api_info* api) {
  (void)event;
  (void)api;
  note("", (int)prof->event_type);
  CHECK(acc_get_device_type() == acc_device_none, "a device of type %d",
        (int)acc_get_device_type());
}

static void initialisation(void) {
  acc_prof_register(acc_ev_device_init_start, look, acc_reg);
  acc_prof_register(acc_ev_device_init_end, look, acc_reg);
  acc_init(acc_device_default);
  HEARD("1 2 ");
  CHECK(acc_get_device_type() == acc_device_host, "no host");
  acc_shutdown(acc_device_host);
  acc_init(acc_device_host);
  HEARD("1 2 ");
  CHECK(acc_get_device_type() == acc_device_host, "no host");
}

static void first_use(void) {
  acc_prof_register(acc_ev_device_init_start, look, acc_reg);
  acc_prof_register(acc_ev_device_init_end, look, acc_reg);
  compute();
  HEARD("1 2 ");
  CHECK(acc_get_device_type() == acc_device_host, "no host");
}

// ---- Many threads at once.

enum { kThreads = 4, kRounds = 500 };

static long always, sometimes;
static void hear_always(acc_prof_info* prof, acc_event_info* event, acc_api_info* api) {
  (void)prof;
  (void)event;
  (void)api;
  __atomic_fetch_add(&always, 1, __ATOMIC_RELAXED);
}
static void hear_sometimes(acc_prof_info* prof, acc_event_info* event, acc_api_info* api) {
  (void)event;
  (void)api;
  CHECK(prof->event_type == acc_ev_compute_construct_end, "event %d", (int)prof->event_type);
  __atomic_fetch_add(&sometimes, 1, __ATOMIC_RELAXED);
}

static void* come_and_go(void* unused) {
  (void)unused;
  int mine = 0;
  for (int i = 0; i < kRounds; ++i) {
    acc_prof_register(acc_ev_compute_construct_end, hear_sometimes, acc_reg);
#pragma acc serial copy(mine)
    mine += 1;
    acc_prof_unregister(acc_ev_compute_construct_end, hear_sometimes, acc_reg);
  }
  CHECK(mine == kRounds, "%d constructs ran", mine);
  return NULL;
}

static void concurrent(void) {
  acc_init(acc_device_host);
  acc_prof_register(acc_ev_compute_construct_end, hear_always, acc_reg);
  pthread_t thread[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    CHECK(pthread_create(&thread[i], NULL, come_and_go, NULL) == 0, "no thread");
  }
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(thread[i], NULL) == 0, "no join");
  // Each thread had registered for its own constructs; the others' may be heard or not.
  CHECK(always == kThreads * kRounds, "%ld of %d ends were told", always, kThreads * kRounds);
  CHECK(sometimes == always, "%ld of %ld ends were told", sometimes, always);
  compute();
  CHECK(sometimes == always - 1, "a callback that was taken back is called");
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "events";
  if (strcmp(mode, "events") == 0) {
    events();
  } else if (strcmp(mode, "order") == 0) {
    order();
  } else if (strcmp(mode, "switches") == 0) {
    switches();
  } else if (strcmp(mode, "callbacks") == 0) {
    callbacks();
  } else if (strcmp(mode, "initialisation") == 0) {
    initialisation();
  } else if (strcmp(mode, "first-use") == 0) {
    first_use();
  } else if (strcmp(mode, "concurrent") == 0) {
    concurrent();
  } else {
    CHECK(0, "unknown mode %s", mode);
  }
  return passed();
}
