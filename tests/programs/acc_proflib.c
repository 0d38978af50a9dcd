// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A profiling library for acc_proflib_program.c, loaded by ACC_PROFLIB: prints what it hears.
#include <acc_prof.h>
#include <stdio.h>

static void hear(acc_prof_info* prof, acc_event_info* event, acc_api_info* api) {
  (void)event;
  (void)api;
  printf("proflib: event %d on device %d\n", (int)prof->event_type, (int)prof->device_type);
}

void acc_register_library(acc_prof_reg reg, acc_prof_reg unreg, acc_prof_lookup_func lookup) {
  printf("proflib: loaded, %s\n",
         reg == acc_prof_register && unreg == acc_prof_unregister && lookup == acc_prof_lookup
             ? "the routines are the program's"
             : "other routines");
  reg(acc_ev_device_init_start, hear, acc_reg);
  reg(acc_ev_compute_construct_end, hear, acc_reg);
  reg(acc_ev_update_start, hear, acc_reg);
  unreg(acc_ev_update_start, hear, acc_reg);
}
