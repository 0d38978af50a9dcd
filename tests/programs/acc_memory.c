// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenACC's data routines, queues and CUDA routines on the host: acc_memory MODE. Memory is shared:
// addresses do not change, everything is present, and what is asynchronous is done on return. Modes
// whose name begins with "no-" end in an error; the manifest says in which words.
#include "check.h"

#include <dlfcn.h>
#include <openacc.h>

#define EQUAL(found, wanted) \
  CHECK((long)(found) == (long)(wanted), #found " is %ld, not %ld", (long)(found), (long)(wanted))

static int a[100], b[100];
static int* pointer = a;

static void fill(void) {
  for (int i = 0; i < 100; ++i) {
    a[i] = i;
    b[i] = -1;
  }
}

static void unchanged(void) {
  for (int i = 0; i < 100; ++i) CHECK(a[i] == i, "a[%d] is %d", i, a[i]);
}

static void presence(void) {
  EQUAL(acc_is_present(a, sizeof a), 1);
  EQUAL(acc_is_present(a, 0), 0);
  EQUAL(acc_is_present(NULL, 4), 0);
  EQUAL(acc_is_present(NULL, 0), 0);
  CHECK(acc_deviceptr(a) == a && acc_hostptr(a) == a, "addresses change");
  CHECK(!acc_deviceptr(NULL) && !acc_hostptr(NULL), "null changes");
  acc_map_data(a, a, sizeof a);
  EQUAL(acc_is_present(a, sizeof a), 1);
  acc_unmap_data(a);
  EQUAL(acc_is_present(a, sizeof a), 1);
}

static void routines(void) {
  fill();
  CHECK(acc_copyin(a, sizeof a) == a && acc_create(b, sizeof b) == b, "addresses change");
  CHECK(acc_pcopyin(a, 4) == a && acc_pcreate(b, 4) == b, "addresses change");
  CHECK(acc_present_or_copyin(a + 9, 4) == a + 9, "addresses change");
  CHECK(acc_present_or_create(b + 9, 4) == b + 9, "addresses change");
  a[3] = 33;
  acc_update_self(a, sizeof a);
  EQUAL(a[3], 33);
  acc_update_device(a, sizeof a);
  EQUAL(a[3], 33);
  a[3] = 3;
  acc_attach((void**)&pointer);
  CHECK(pointer == a, "the pointer changed");
  acc_detach((void**)&pointer);
  acc_detach_finalize((void**)&pointer);
  CHECK(pointer == a, "the pointer changed");
  // As often as one likes: nobody counts.
  acc_copyout(a, sizeof a);
  acc_copyout_finalize(a, sizeof a);
  acc_delete(a, sizeof a);
  acc_delete_finalize(b, sizeof b);
  acc_delete(b, 0);
  EQUAL(acc_is_present(a, sizeof a), 1);
  unchanged();
}

static void asynchronous(void) {
  fill();
  for (int queue = -2; queue < 5; ++queue) {
    acc_copyin_async(a, sizeof a, queue);
    acc_create_async(b, sizeof b, queue);
    acc_update_device_async(a, sizeof a, queue);
    acc_memcpy_to_device_async(b, a, sizeof a, queue);
    for (int i = 0; i < 100; ++i) CHECK(b[i] == i, "b[%d] is %d on return", i, b[i]);
    for (int i = 0; i < 100; ++i) b[i] = 2 * i;
    acc_memcpy_from_device_async(a, b, sizeof a, queue);
    for (int i = 0; i < 100; ++i) CHECK(a[i] == 2 * i, "a[%d] is %d on return", i, a[i]);
    for (int i = 0; i < 100; ++i) a[i] = i;
    acc_update_self_async(a, sizeof a, queue);
    acc_attach_async((void**)&pointer, queue);
    acc_detach_async((void**)&pointer, queue);
    acc_detach_finalize_async((void**)&pointer, queue);
    EQUAL(acc_async_test(queue), 1);
    acc_wait(queue);
    acc_async_wait(queue);
    acc_wait_async(queue, queue + 1);
    acc_wait_all_async(queue);
    acc_copyout_async(a, sizeof a, queue);
    acc_copyout_finalize_async(a, sizeof a, queue);
    acc_delete_async(b, sizeof b, queue);
    acc_delete_finalize_async(b, sizeof b, queue);
  }
  EQUAL(acc_async_test_all(), 1);
  acc_wait_all();
  acc_async_wait_all();
  unchanged();
  CHECK(pointer == a, "the pointer changed");
}

static void blocks(void) {
  CHECK(!acc_malloc(0), "nothing has an address");
  acc_free(NULL);
  int* block = acc_malloc(sizeof a);
  CHECK(block, "no memory");
  fill();
  acc_memcpy_to_device(block, a, sizeof a);
  for (int i = 0; i < 100; ++i) block[i] += 1;
#pragma acc parallel loop deviceptr(block)
  for (int i = 0; i < 100; ++i) block[i] *= 2;
  acc_memcpy_from_device(b, block, sizeof b);
  for (int i = 0; i < 100; ++i) CHECK(b[i] == 2 * (i + 1), "b[%d] is %d", i, b[i]);
  // Both sides are the host's: the ranges may overlap.
  acc_memcpy_to_device(a + 1, a, 99 * sizeof *a);
  for (int i = 1; i < 100; ++i) CHECK(a[i] == i - 1, "a[%d] is %d", i, a[i]);
  acc_memcpy_to_device(NULL, NULL, 0);
  EQUAL(acc_is_present(block, sizeof a), 1);
  acc_free(block);
}

static void cuda(void) {
  CHECK(!acc_get_current_cuda_device(), "a CUDA device");
  CHECK(!acc_get_current_cuda_context(), "a CUDA context");
  CHECK(!acc_get_cuda_stream(0) && !acc_get_cuda_stream(-7), "a CUDA stream");
  EQUAL(acc_set_cuda_stream(1, NULL), 0);
  EQUAL(acc_set_cuda_stream(-7, a), 0);
  EQUAL(acc_set_cuda_stream(1, a), -1);
}

// What libgomp 12 crashes on: these come first in a program, and the device is not ready yet.
static void first(const char* routine) {
  fill();
  if (strcmp(routine, "copyout") == 0) acc_copyout(a, sizeof a);
  if (strcmp(routine, "delete") == 0) acc_delete_async(a, sizeof a, 1);
  if (strcmp(routine, "unmap") == 0) acc_unmap_data(a);
  if (strcmp(routine, "memcpy") == 0) acc_memcpy_to_device(b, a, sizeof a);
  if (strcmp(routine, "free") == 0) acc_free(malloc(1));
  if (strcmp(routine, "free") != 0) EQUAL(acc_async_test(1), 1);
  if (strcmp(routine, "memcpy") == 0) EQUAL(b[99], 99);
  unchanged();
}

// Names of GCC 16, which the library must have in the version node that programs bind to.
static void* later_name(const char* name) {
  void* found = dlvsym(RTLD_DEFAULT, name, "OACC_2.6.1");
  CHECK(found, "no %s", name);
  return found;
}

static void later(void) {
  fill();
  void (*copy)(void*, void*, size_t) =
      (void (*)(void*, void*, size_t))later_name("acc_memcpy_device");
  copy(b, a, 50 * sizeof *a);
  EQUAL(b[49], 49);
  EQUAL(b[50], -1);
  void (*copy_async)(void*, void*, size_t, int) =
      (void (*)(void*, void*, size_t, int))later_name("acc_memcpy_device_async");
  copy_async(b + 50, a + 50, 50 * sizeof *a, 3);
  EQUAL(b[99], 99);
  const int length = sizeof a, queue = 3;
  const long long_length = sizeof a;
  static const char* const kNames[] = {"copyout", "delete"};
  for (int i = 0; i < 2; ++i) {
    char name[64];
    snprintf(name, sizeof name, "acc_%s_finalize_async_32_h_", kNames[i]);
    ((void (*)(void*, const int*, const int*))later_name(name))(a, &length, &queue);
    snprintf(name, sizeof name, "acc_%s_finalize_async_64_h_", kNames[i]);
    ((void (*)(void*, const long*, const int*))later_name(name))(a, &long_length, &queue);
    snprintf(name, sizeof name, "acc_%s_finalize_async_array_h_", kNames[i]);
    later_name(name);
  }
  unchanged();
}

static int seven = -7, eight = -8;
static void wait_for(void) {
#pragma acc wait(1, seven)
}
static void wait_with(void) {
#pragma acc wait async(eight)
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "presence";
  if (strncmp(mode, "no-", 3) == 0 && strcmp(mode, "no-device") != 0) acc_init(acc_device_host);
#define MODE(name, call)         \
  if (strcmp(mode, name) == 0) { \
    call;                        \
  } else
  MODE("presence", presence())
  MODE("routines", routines())
  MODE("asynchronous", acc_init(acc_device_host); asynchronous())
  MODE("blocks", blocks())
  MODE("cuda", cuda())
  MODE("first", first(argv[2]))
  MODE("later", later())
  MODE("no-device", acc_wait(1))
  MODE("no-size", acc_copyin(a, 0))
  MODE("no-address", acc_create(NULL, 16))
  MODE("no-address-async", acc_copyin_async(NULL, 16, 1))
  MODE("no-mapping", acc_map_data(a, b, sizeof a))
  MODE("no-queue", acc_wait(-3))
  MODE("no-queue-to-test", acc_async_test(-100))
  MODE("no-queue-to-wait-for", acc_wait_async(-4, 1))
  MODE("no-queue-to-wait-with", acc_wait_all_async(-5))
  MODE("no-queue-to-attach", acc_attach_async((void**)&pointer, -6))
  MODE("no-queue-of-wait", wait_for())
  MODE("no-queue-of-wait-async", wait_with())
  CHECK(0, "unknown mode %s", mode);
  return passed();
}
