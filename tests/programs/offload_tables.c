// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program with code for devices, as compilers for these make it: constructors register it, and its
// target regions, with an entry for the host each, run on the host all the same. One line says so.
#include <omp.h>

#include "check.h"

void GOMP_offload_register(const void*, int, const void*);
void GOMP_offload_register_ver(unsigned, const void*, int, const void*);
void GOMP_offload_unregister_ver(unsigned, const void*, int, const void*);

// Host functions and variables, begin and end; and what a plug-in would read.
static void* const host_table[4];
static const char image[16];
enum { kNvptx = 5, kGcn = 8 };

__attribute__((constructor)) static void bring_code(void) {
  GOMP_offload_register_ver(0x10002, host_table, kNvptx, image);
  GOMP_offload_register_ver(0x10002, host_table, kGcn, image);
  GOMP_offload_register(host_table, kNvptx, image);
}

__attribute__((destructor)) static void take_code_back(void) {
  GOMP_offload_unregister_ver(0x10002, host_table, kNvptx, image);
}

int main(void) {
  int on_host = 0;
  int sum = 0;
#pragma omp target map(from : on_host)
  on_host = omp_is_initial_device();
#pragma omp target teams distribute parallel for map(tofrom : sum) reduction(+ : sum)
  for (int i = 0; i < 100; ++i) sum += i;
  CHECK(on_host, "a target region says that it is not on the host");
  CHECK(sum == 4950, "a target region gives %d", sum);
  CHECK(omp_get_num_devices() == 0, "%d devices", omp_get_num_devices());
  return 0;
}
