/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Shows where a policy lets nested teams run. The last of eight threads opens teams of two, until 20
 * of their members have run on another kernel thread; the report tells on which domain:
 *
 *     bosk run --synthetic "node:4 core:2 pu:1" --workers 8 --policy ./wrr.so:6-1-1-0 --report=full ./where
 */
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 8 };

int main(void) {
  long opened = 0;
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(THREADS)
  if (omp_get_thread_num() == THREADS - 1) {
    const pid_t opener = gettid();
    for (int elsewhere = 0; elsewhere < 20; ++opened) {
#pragma omp parallel num_threads(2) reduction(+ : elsewhere)
      {
        if (gettid() != opener) ++elsewhere;
        for (volatile int i = 0; i < 2000; ++i) {
        }
      }
    }
  }
  printf("opened %ld teams\n", opened);
  return 0;
}
