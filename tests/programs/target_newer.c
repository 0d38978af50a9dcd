// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What GCC 13 to 16 call of devices: copies that wait for tasks, interop objects, unique numbers, the
// allocators directive. Debian's GCC 12 knows none of these names, so they are declared here, weak, and
// called as those compilers would. Mode: copies, interop, uid, allocators, fortran, pause.
#include "check.h"

#include <dlfcn.h>
#include <limits.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>

#define EQUAL(found, expected)                                                      \
  do {                                                                              \
    const long found_ = (long)(found), expected_ = (long)(expected);                \
    CHECK(found_ == expected_, "%s is %ld and not %ld", #found, found_, expected_); \
  } while (0)
#define NEWER __attribute__((weak)) extern

NEWER int omp_target_memcpy_async(void*, const void*, size_t, size_t, size_t, int, int, int,
                                  omp_depend_t*);
NEWER int omp_target_memcpy_rect_async(void*, const void*, size_t, int, const size_t*,
                                       const size_t*, const size_t*, const size_t*, const size_t*,
                                       int, int, int, omp_depend_t*);
NEWER void* omp_target_memset(void*, int, size_t, int);
NEWER void* omp_target_memset_async(void*, int, size_t, int, int, omp_depend_t*);
NEWER void* omp_get_mapped_ptr(const void*, int);
NEWER int omp_target_is_accessible(const void*, size_t, int);
NEWER const char* omp_get_uid_from_device(int);
NEWER int omp_get_device_from_uid(const char*);
NEWER void GOMP_interop(int, int, void***, const int*, const char**, int, void**, int, void***,
                        unsigned, void**);
NEWER int omp_get_num_interop_properties(void*);
NEWER intptr_t omp_get_interop_int(void*, int, int*);
NEWER void* omp_get_interop_ptr(void*, int, int*);
NEWER const char* omp_get_interop_str(void*, int, int*);
NEWER const char* omp_get_interop_name(void*, int);
NEWER const char* omp_get_interop_type_desc(void*, int);
NEWER const char* omp_get_interop_rc_desc(void*, int);
NEWER void* GOMP_alloc(size_t, size_t, uintptr_t);
NEWER void GOMP_free(void*, uintptr_t);
NEWER void GOMP_add_alloc(void*);
NEWER bool GOMP_is_alloc(void*);
NEWER void* GOMP_target_map_indirect_ptr(void*);

enum { kHost = 0, kInitial = -1, kAbsent = 3, kInvalid = -4, kDefault = -5 };

static void work(int amount) {
  volatile int spin = 0;
  for (int i = 0; i < amount; ++i) spin = spin + i;
}

// ---- copies

/// task → copy → copy of a box → fill → task, each after the one before.
static void chain_of_copies(void) {
  enum { kRows = 4, kColumns = 6 };
  int source[kRows][kColumns], middle[kRows][kColumns], box[kRows][kColumns];
  memset(source, 0, sizeof source);
  memset(middle, 0xff, sizeof middle);
  memset(box, 0xff, sizeof box);
  omp_depend_t after_source, after_middle[2];
#pragma omp depobj(after_source) depend(inout : source)
#pragma omp depobj(after_middle[0]) depend(inout : middle)
#pragma omp depobj(after_middle[1]) depend(inout : source)
#pragma omp task depend(out : source) shared(source)
  {
    work(3000);
    for (int i = 0; i < kRows * kColumns; ++i) ((int*)source)[i] = i;
  }
  EQUAL(omp_target_memcpy_async(middle, source, sizeof middle - 8, 8, 8, kHost, kInitial, 1,
                                &after_source),
        0);
  {
    // The lists are gone when it runs.
    size_t lists[5][2] = {{2, 3}, {1, 2}, {2, 1}, {kRows, kColumns}, {kRows, kColumns}};
    EQUAL(omp_target_memcpy_rect_async(box, middle, sizeof(int), 2, lists[0], lists[1], lists[2],
                                       lists[3], lists[4], kInitial, kDefault, 2, after_middle),
          0);
    memset(lists, 0x55, sizeof lists);
  }
  CHECK(omp_target_memset_async(source, 1, sizeof source / 2, kHost, 1, &after_source) == source,
        "another address");
  int sum = 0;
#pragma omp task depend(in : source) shared(sum, source)
  for (int i = 0; i < kRows * kColumns; ++i) sum += ((int*)source)[i];
#pragma omp taskwait
  for (int i = 0; i < kRows; ++i)
    for (int k = 0; k < kColumns; ++k) {
      EQUAL(middle[i][k], i == 0 && k < 2 ? -1 : i * kColumns + k);
      // Rows 1 and 2, columns 2 to 4, from rows 2 and 3, columns 1 to 3.
      const int inside = i >= 1 && i <= 2 && k >= 2 && k <= 4;
      EQUAL(box[i][k], inside ? (i + 1) * kColumns + k - 1 : -1);
    }
  EQUAL(sum, 12 * 0x01010101 + (12 + 23) * 6);
#pragma omp depobj(after_source) destroy
#pragma omp depobj(after_middle[0]) destroy
#pragma omp depobj(after_middle[1]) destroy
}

/// More dependences than fit in a short list, on tasks that all have to end first.
static void many_dependences(void) {
  enum { kMany = 40 };
  int parts[kMany], copy[kMany];
  omp_depend_t on[kMany];
  for (int i = 0; i < kMany; ++i) {
    parts[i] = copy[i] = -1;
#pragma omp depobj(on[i]) depend(in : parts[i])
#pragma omp task depend(out : parts[i]) shared(parts) firstprivate(i)
    {
      work(200);
      parts[i] = i;
    }
  }
  EQUAL(omp_target_memcpy_async(copy, parts, sizeof parts, 0, 0, kHost, kHost, kMany, on), 0);
#pragma omp taskwait
  for (int i = 0; i < kMany; ++i) EQUAL(copy[i], i);
}

static void plain_copies(void) {
  char to[16] = "...............", from[] = "0123456789";
  EQUAL(omp_target_memcpy_async(to, from, 4, 1, 2, kInitial, kDefault, 0, NULL), 0);
  CHECK(memcmp(to, ".2345.", 6) == 0, "copied %.6s", to);
  EQUAL(omp_target_memcpy_async(to, from, 4, 0, 0, kAbsent, kHost, 0, NULL), EINVAL);
  EQUAL(omp_target_memcpy_async(to, from, 4, 0, 0, kHost, kAbsent, 0, NULL), EINVAL);
  EQUAL(omp_target_memcpy_rect_async(NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, kHost, kHost,
                                     0, NULL),
        INT_MAX);
  const size_t one[] = {1, 1, 1}, zero[] = {0, 0, 0}, huge[] = {2, SIZE_MAX / 2, 4};
  omp_depend_t on;
#pragma omp depobj(on) depend(in : to)
  EQUAL(omp_target_memcpy_rect_async(to, from, 4, 3, one, zero, zero, huge, huge, kHost, kHost, 1,
                                     &on),
        EINVAL);
#pragma omp taskwait
  CHECK(memcmp(to, ".2345.", 6) == 0, "a refused copy left %.6s", to);
  CHECK(omp_target_memset(to + 1, '#', 3, kHost) == to + 1 && memcmp(to, ".###5.", 6) == 0,
        "filled %.6s", to);
  CHECK(omp_target_memset(to, '#', 0, kInitial) == to && to[0] == '.', "filled nothing: %.6s", to);

  EQUAL(omp_target_is_accessible(to, sizeof to, kHost), 1);
  EQUAL(omp_target_is_accessible(to, sizeof to, kInitial), 1);
  EQUAL(omp_target_is_accessible(to, sizeof to, kAbsent), 0);
  CHECK(omp_get_mapped_ptr(to, kHost) == to && omp_get_mapped_ptr(to, kInitial) == to &&
            omp_get_mapped_ptr(to, kAbsent) == NULL,
        "mapped elsewhere");
  CHECK(GOMP_target_map_indirect_ptr(to) == to, "mapped elsewhere");
}

static void copies(void) {
  plain_copies();
  chain_of_copies();
  many_dependences();
  for (int threads = 1; threads < 5; ++threads) {
#pragma omp parallel num_threads(threads)
    {
      chain_of_copies();
#pragma omp single
      for (int i = 0; i < 5; ++i) {
#pragma omp task
        chain_of_copies();
        many_dependences();
      }
    }
  }
}

// ---- interop

static void interop(void) {
  void *a = &a, *b = &b, *used = NULL;
  void** init[] = {&a, &b};
  const int kinds[] = {1, 3};
  GOMP_interop(kDefault, 2, init, kinds, NULL, 0, NULL, 0, NULL, 0, NULL);
  CHECK(a == NULL && b == NULL, "the host has a foreign run-time");
  a = b = &a;
  GOMP_interop(kAbsent, 1, init, kinds, NULL, 1, &used, 1, &init[1], 0, NULL);
  CHECK(a == NULL && b == NULL, "a device that is not there has a foreign run-time");

  // With depend it waits, with nowait too whoever comes after.
  int value = 0, order = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
  for (int round = 0; round < 20; ++round) {
#pragma omp task depend(out : value) shared(value)
    {
      work(1000);
      value = 1;
    }
    void* depend[] = {(void*)1, (void*)1, &value};  // as compilers list depend(inout: value)
    GOMP_interop(-1, 0, NULL, NULL, NULL, 1, &used, 0, NULL, 0, depend);
    EQUAL(value, 1);
#pragma omp task depend(out : value) shared(value)
    {
      work(1000);
      value = 2;
    }
    GOMP_interop(-1, 0, NULL, NULL, NULL, 1, &used, 0, NULL, 1, depend);
#pragma omp task depend(inout : value) shared(value, order)
    {
      order = value;
      value = 0;
    }
#pragma omp taskwait
    EQUAL(order, 2);
  }

  const int properties = omp_get_num_interop_properties(NULL);
  EQUAL(properties, 0);
  static const char* const names[] = {"targetsync", "device_context", "device",
                                      "platform",   "device_num",     "vendor_name",
                                      "vendor",     "fr_name",        "fr_id"};
  for (int property = -11; property <= properties + 1; ++property) {
    const bool known = property >= -9 && property < properties;
    const int expected = known ? -1 : -2;
    int code = 7;
    EQUAL(omp_get_interop_int(NULL, property, &code), 0);
    EQUAL(code, expected);
    code = 7;
    CHECK(omp_get_interop_ptr(NULL, property, &code) == NULL, "a pointer");
    EQUAL(code, expected);
    code = 7;
    CHECK(omp_get_interop_str(NULL, property, &code) == NULL, "a string");
    EQUAL(code, expected);
    EQUAL(omp_get_interop_int(NULL, property, NULL), 0);
    CHECK(omp_get_interop_type_desc(NULL, property) == NULL, "a type");
    const char* name = omp_get_interop_name(NULL, property);
    if (known)
      CHECK(name != NULL && strcmp(name, names[property + 9]) == 0, "%d is %s", property, name);
    else
      CHECK(name == NULL, "%d is %s", property, name);
  }
  for (int code = -8; code < 4; ++code) {
    const char* text = omp_get_interop_rc_desc(NULL, code);
    CHECK((text != NULL && strlen(text) > 5) == (code >= -5 && code <= 1), "%d means %s", code,
          text != NULL ? text : "nothing");
  }
}

// ---- unique identifiers

static void uid(void) {
  const char* host = omp_get_uid_from_device(kInitial);
  CHECK(host != NULL && strcmp(host, "OMP_INITIAL_DEVICE") == 0, "the host is %s", host);
  for (int device = -6; device < 5; ++device) {
    const char* found = omp_get_uid_from_device(device);
    const bool is_host = device == kHost || device == kInitial || device == kDefault;
    CHECK((found != NULL) == is_host, "device %d is %s", device, found);
    EQUAL(omp_get_device_from_uid(found), is_host ? omp_get_initial_device() : kInvalid);
  }
  EQUAL(omp_get_device_from_uid("OMP_INITIAL_DEVIC"), kInvalid);
  EQUAL(omp_get_device_from_uid("OMP_INITIAL_DEVICE "), kInvalid);
  EQUAL(omp_get_device_from_uid(""), kInvalid);
}

// ---- allocators

/// What gfortran makes of an allocatable variable in `!$omp allocators`, and of its deallocation.
static void* allocate_variable(int i) {
  if (i % 3 == 0) return malloc(40);
  void* block = GOMP_alloc(16, 40, omp_default_mem_alloc);
  GOMP_add_alloc(block);
  return block;
}
static bool deallocate_variable(void* block) {
  const bool ours = GOMP_is_alloc(block);
  if (ours)
    GOMP_free(block, 0);
  else
    free(block);
  return ours;
}

static void allocators(void) {
  CHECK(!GOMP_is_alloc(NULL) && !GOMP_is_alloc(&errno), "an address that nobody gave");
  enum { kMany = 3000 };
#pragma omp parallel num_threads(4)
  {
    void** blocks = malloc(kMany * sizeof *blocks);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < kMany; ++i) {
        blocks[i] = allocate_variable(i);
        memset(blocks[i], i, 40);
      }
      for (int i = 0; i < kMany; ++i) {
        const int at = (i * 7 + round) % kMany;
        CHECK(*(char*)blocks[at] == (char)at, "block %d was overwritten", at);
        CHECK(deallocate_variable(blocks[at]) == (at % 3 != 0), "block %d is somebody else's", at);
      }
    }
    free(blocks);
  }
  int x;
  GOMP_add_alloc(&x);
  CHECK(GOMP_is_alloc(&x) && !GOMP_is_alloc(&x), "who asks takes it over");
}

// ---- pauses

/// A target region stands on the threads that a pause would give back; libgomp 12 does not ask.
static void pause_inside(void) {
  int inside = 0;
#pragma omp target map(from : inside)
  {
    inside = omp_pause_resource(omp_pause_soft, kHost) != 0 &&
             omp_pause_resource_all(omp_pause_hard) != 0;
#pragma omp parallel num_threads(3)
    CHECK(omp_pause_resource_all(omp_pause_hard) != 0, "paused in a region");
  }
  CHECK(inside, "paused in a target region");
  for (int round = 0; round < 5; ++round) {
    int members = 0;
    EQUAL(omp_pause_resource_all(round % 2 ? omp_pause_hard : omp_pause_soft), 0);
#pragma omp target parallel num_threads(3) reduction(+ : members)
    members += 1;
    EQUAL(members, 3);
  }
}

/// The same through gfortran's calling convention: f_target_newer.f90.
static void fortran(void) {
  char path[4096];
  const char* folder = getenv("BOSK_TEST_DIR");
  snprintf(path, sizeof path, "%s/libf_target_newer.so", folder != NULL ? folder : ".");
  void* library = dlopen(path, RTLD_NOW);
  CHECK(library != NULL, "dlopen: %s", dlerror());
  void (*run)(void) = (void (*)(void))dlsym(library, "plugin_run");
  CHECK(run != NULL, "dlsym: %s", dlerror());
  run();
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "copies") == 0)
    copies();
  else if (strcmp(mode, "interop") == 0)
    interop();
  else if (strcmp(mode, "uid") == 0)
    uid();
  else if (strcmp(mode, "allocators") == 0)
    allocators();
  else if (strcmp(mode, "pause") == 0)
    pause_inside();
  else if (strcmp(mode, "fortran") == 0)
    fortran();
  else
    fail_at(__LINE__, "mode?");
  return passed();
}
