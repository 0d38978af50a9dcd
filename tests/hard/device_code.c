// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program that was linked with code for a device registers it before main(), as the compiler's constructor does; without the
// device its target regions run on the host.
#include "hard.h"

extern void GOMP_offload_register_ver(unsigned version, const void* host_table, int target_type,
                                      const void* target_data);
extern void GOMP_offload_unregister_ver(unsigned version, const void* host_table, int target_type,
                                        const void* target_data);

enum { kNvptx = 5, kVersion = 1 << 16 };

static void* table[4];
static char code[64] = "code for a device that is not here";

__attribute__((constructor)) static void enter(void) {
  table[0] = table[1] = table[2] = table[3] = table;
  GOMP_offload_register_ver(kVersion, table, kNvptx, code);
  GOMP_offload_register_ver(kVersion, table, kNvptx, code);
}
__attribute__((destructor)) static void leave(void) {
  GOMP_offload_unregister_ver(kVersion, table, kNvptx, code);
  GOMP_offload_unregister_ver(kVersion, table, kNvptx, code);
}

int main(void) {
  int on_host = 0, sum = 0;
#pragma omp target map(tofrom : on_host)
  on_host = omp_is_initial_device();
  CHECK(on_host == 1, "the target region did not run on the host");
#pragma omp target teams distribute parallel for map(tofrom : sum) reduction(+ : sum)
  for (int i = 0; i < 1000; ++i) sum += i;
  CHECK(sum == 499500, "the sum is %d", sum);
  CHECK(omp_get_num_devices() == 0, "%d devices", omp_get_num_devices());
  return passed();
}
