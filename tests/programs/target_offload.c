// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asks for a device and says that it went on: under OMP_TARGET_OFFLOAD=mandatory it may not. The first
// argument is what asks, the second the device's number; none: no device clause.
#include "check.h"

#include <omp.h>

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const int device = argc > 2 ? atoi(argv[2]) : 0;
  int x[4] = {1, 2, 3, 4}, y[4] = {0};
  setvbuf(stdout, NULL, _IONBF, 0);
  if (strcmp(what, "target") == 0) {
    if (argc > 2) {
#pragma omp target device(device) map(tofrom : x)
      x[0] = 10 + omp_is_initial_device();
    } else {
#pragma omp target map(tofrom : x)
      x[0] = 10 + omp_is_initial_device();
    }
    CHECK(x[0] == 11, "the region left %d", x[0]);
  } else if (strcmp(what, "nowait") == 0) {
#pragma omp target device(device) map(tofrom : x) nowait
    x[0] = 11;
#pragma omp taskwait
    CHECK(x[0] == 11, "the region left %d", x[0]);
  } else if (strcmp(what, "if") == 0) {
#pragma omp target device(device) map(tofrom : x) if (argc > 100)
    x[0] = 11;
    CHECK(x[0] == 11, "the region left %d", x[0]);
  } else if (strcmp(what, "data") == 0) {
#pragma omp target data device(device) map(to : x)
    puts("inside");
  } else if (strcmp(what, "update") == 0) {
#pragma omp target update device(device) to(x)
  } else if (strcmp(what, "enter") == 0) {
#pragma omp target enter data device(device) map(to : x)
  } else if (strcmp(what, "alloc") == 0) {
    void* block = omp_target_alloc(10, device);
    CHECK(block == NULL, "memory on device %d", device);
  } else if (strcmp(what, "present") == 0) {
    CHECK(!omp_target_is_present(x, device), "present on device %d", device);
  } else if (strcmp(what, "memcpy") == 0) {
    CHECK(omp_target_memcpy(y, x, sizeof x, 0, 0, device, omp_get_initial_device()) == EINVAL,
          "copied to device %d", device);
    CHECK(y[0] == 0, "copied to device %d", device);
  } else if (strcmp(what, "associate") == 0) {
    CHECK(omp_target_associate_ptr(x, y, sizeof x, 0, device) == EINVAL, "associated");
  } else if (strcmp(what, "set") == 0) {
    omp_set_default_device(0);
#pragma omp target map(tofrom : x)
    x[0] = 11;
    CHECK(x[0] == 11, "the region left %d", x[0]);
  } else {
    fail_at(__LINE__, "what?");
  }
  puts("went on");
  return passed();
}
