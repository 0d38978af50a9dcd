// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Teams in teams that compute, and nothing else: computing_teams ROUNDS. One outer member for each processor, each of which opens teams of four
// that count bytes up in a short loop. Nobody waits for anybody in a loop, so nobody is to be taken to poll: here least of all, where many
// processors take turns on few, and a tick may come before the thread has done anything since the last one.
#include <omp.h>
#include <stdlib.h>

enum { BYTES = 1 << 18, LINE = 64, TIMES = 400 };

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(omp_get_num_procs())
  for (int round = 0; round < rounds; ++round)
#pragma omp parallel num_threads(4)
  {
    static __thread unsigned char bytes[BYTES];
    for (int i = 0; i < TIMES; ++i)
      for (volatile unsigned char* at = bytes; at < bytes + BYTES; at += LINE) ++*at;
  }
  return 0;
}
