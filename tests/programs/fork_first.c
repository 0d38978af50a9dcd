// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A child that is forked while another pthread is in the process's first call of OpenMP: what that call sets up
// for the process, the child finds whole or sets up itself. Arguments: processes, microseconds from one to the next.
#include "fork_first.h"

#include <omp.h>

static void open_region(void) {
  int members = 0;
#pragma omp parallel num_threads(2) reduction(+ : members)
  members += 1;
  CHECK(members == 2, "%d members", members);
}

/// The child of a child: what the first did about the fork is done once.
static void open_region_in_two_generations(void) {
  open_region();
  const pid_t grandchild = fork();
  if (grandchild == 0) {
    arm_watchdog(20);
    open_region();
    _exit(0);
  }
  wait_for_child(grandchild, 0, "a grandchild");
}

int main(int argc, char** argv) {
  CHECK(argc == 3, "usage: fork_first PROCESSES MICROSECONDS");
  fork_beside_first_use(atoi(argv[1]), atof(argv[2]), NULL, open_region,
                        open_region_in_two_generations);
  return passed();
}
