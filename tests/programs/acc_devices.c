// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenACC's routines of devices on a machine that has none but the host: acc_devices MODE. Modes whose
// name begins with "no-" end in an error; the manifest says in which words.
#include "check.h"

#include <openacc.h>
#include <pthread.h>

#define EQUAL(found, wanted) \
  CHECK((long)(found) == (long)(wanted), #found " is %ld, not %ld", (long)(found), (long)(wanted))

// gcc would answer for it.
static int (*volatile on_device)(acc_device_t) = acc_on_device;

static float a[8];
static int never;

static void in_thread(void (*what)(void)) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, (void* (*)(void*))what, NULL) == 0, "no thread");
  CHECK(pthread_join(thread, NULL) == 0, "no join");
}

static void host(void) {
  EQUAL(acc_get_num_devices(acc_device_host), 1);
  EQUAL(acc_get_num_devices(acc_device_default), 1);
  EQUAL(acc_get_num_devices(acc_device_none), 0);
  EQUAL(acc_get_num_devices(acc_device_not_host), 0);
  EQUAL(acc_get_num_devices(acc_device_nvidia), 0);
  EQUAL(acc_get_num_devices(acc_device_radeon), 0);
  EQUAL(acc_get_device_type(), acc_device_host);
  EQUAL(acc_get_device_num(acc_device_host), 0);
  EQUAL(acc_get_device_num(acc_device_default), 0);
  EQUAL(on_device(acc_device_host), 1);
  EQUAL(on_device(acc_device_none), 1);
  EQUAL(on_device(acc_device_default), 0);
  EQUAL(on_device(acc_device_not_host), 0);
  EQUAL(on_device(acc_device_nvidia), 0);
  acc_set_device_num(0, acc_device_default);
  acc_set_device_num(-1, acc_device_host);
  acc_set_device_num(0, acc_device_none);
  acc_set_device_type(acc_device_default);
  EQUAL(acc_get_device_type(), acc_device_host);
  EQUAL(acc_get_device_num(acc_device_host), 0);
}

static void properties(void) {
  EQUAL(acc_get_property(0, acc_device_host, acc_property_memory), 0);
  EQUAL(acc_get_property(0, acc_device_default, acc_property_free_memory), 0);
  const char* name = acc_get_property_string(0, acc_device_host, acc_property_name);
  const char* vendor = acc_get_property_string(0, acc_device_host, acc_property_vendor);
  const char* driver = acc_get_property_string(0, acc_device_host, acc_property_driver);
  CHECK(name && strcmp(name, "GOMP") == 0, "the name is %s", name);
  CHECK(vendor && strcmp(vendor, "GNU") == 0, "the vendor is %s", vendor);
  CHECK(driver && strcmp(driver, "1.0") == 0, "the driver is %s", driver);
  // Each kind of property has its own routine; the other one has nothing to say, of any device.
  EQUAL(acc_get_property(0, acc_device_host, acc_property_name), 0);
  EQUAL(acc_get_property(3, acc_device_nvidia, acc_property_vendor), 0);
  CHECK(!acc_get_property_string(0, acc_device_host, acc_property_memory), "memory has a name");
  CHECK(!acc_get_property_string(9, acc_device_host, acc_property_memory), "memory has a name");
}

static void attached(void) { EQUAL(acc_async_test(1), 1); }
static void attach(void) { EQUAL(acc_copyin(a, sizeof a) == a, 1); }

// A thread has a device once it used one; a shutdown takes it from all threads, a use brings it back.
static void life(void) {
  acc_init(acc_device_host);
  attached();
  in_thread(attach);
  acc_shutdown(acc_device_default);
  acc_set_device_type(acc_device_host);
  attached();
  acc_shutdown(acc_device_host);
  acc_init(acc_device_default);
  attached();
  acc_shutdown(acc_device_host);
#pragma acc parallel copy(a)
  a[0] = 1;
  attached();
}

// It can be initialised before or after a thread used another's initialisation.
static void* initialise(void* unused) {
  (void)unused;
  acc_init(acc_device_host);
  attached();
  return NULL;
}
static void threads(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, initialise, NULL) == 0, "no thread");
  CHECK(pthread_join(thread, NULL) == 0, "no join");
  attach();
  attached();
  acc_shutdown(acc_device_host);
  in_thread(attach);
  acc_init(acc_device_host);
  attached();
}

static void shut_down(void) { acc_shutdown(acc_device_host); }
static void change_type(void) { acc_set_device_type(acc_device_host); }

static void inside(void) {
  acc_init(acc_device_host);
#pragma acc data copy(a)
  {
    acc_set_device_type(acc_device_host);
    acc_set_device_num(0, acc_device_host);
#pragma acc data copy(a) if (never)
    in_thread(attach);
  }
  acc_shutdown(acc_device_host);
}

static void shut_down_in_data(void) {
#pragma acc data copy(a)
  shut_down();
}
static void shut_down_in_others_data(void) {
#pragma acc data copy(a)
  in_thread(shut_down);
}
static void in_fallback(void (*what)(void)) {
#pragma acc parallel if (never) copyin(what)
  what();
}

static void environment(const char* number, int count) {
  EQUAL(acc_get_num_devices(acc_device_default), count);
  EQUAL(acc_get_num_devices(acc_device_host), 1);
  EQUAL(acc_get_device_num(acc_device_host), atoi(number));
  acc_set_device_num(0, acc_device_host);
  EQUAL(acc_get_device_num(acc_device_host), 0);
}

static void test_queue(void) { acc_async_test(1); }

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "host";
#define MODE(name, call)         \
  if (strcmp(mode, name) == 0) { \
    call;                        \
  } else
  MODE("host", host())
  MODE("properties", properties())
  MODE("life", life())
  MODE("threads", threads())
  MODE("inside", inside())
  MODE("environment", environment(argv[2], atoi(argv[3])))
  MODE("no-type", acc_set_device_type((acc_device_t)77))
  MODE("no-negative-type", EQUAL(acc_get_num_devices((acc_device_t)-2), 0))
  MODE("no-accelerator", acc_init(acc_device_not_host))
  MODE("no-nvidia", acc_set_device_num(0, acc_device_nvidia))
  MODE("no-radeon", EQUAL(acc_get_device_num(acc_device_radeon), 0))
  MODE("no-number", acc_set_device_num(1, acc_device_host))
  MODE("no-property", acc_get_property(1, acc_device_host, acc_property_memory))
  MODE("no-second-init", acc_init(acc_device_host); acc_init(acc_device_host))
  MODE("no-init-after-use", attach(); acc_init(acc_device_host))
  MODE("no-shutdown-first", acc_shutdown(acc_device_host))
  MODE("no-second-shutdown", acc_init(acc_device_host); acc_shutdown(acc_device_host);
       acc_shutdown(acc_device_host))
  MODE("no-device-in-thread", acc_init(acc_device_host); in_thread(test_queue))
  MODE("no-device-left", acc_init(acc_device_host); acc_shutdown(acc_device_host); test_queue())
  MODE("no-device-left-by-thread", acc_init(acc_device_host); in_thread(shut_down); test_queue())
  MODE("no-shutdown-in-data", shut_down_in_data())
  MODE("no-shutdown-in-others-data", shut_down_in_others_data())
  MODE("no-shutdown-in-fallback", in_fallback(shut_down))
  MODE("change-in-fallback", in_fallback(change_type))
  CHECK(0, "unknown mode %s", mode);
  return passed();
}
