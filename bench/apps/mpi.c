// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two processes of teams that pass a number to each other after each step; MPI libraries wait by polling.
//   mpi funneled|all STEPS   by the initial thread between regions, or by every member for itself
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double compute(int rounds) {
  double value = 1;
  for (int i = 0; i < rounds; i++) value = value * 1.0000001 + 1e-9;
  return value;
}

/// The other process is as far as this one.
static double exchange(int other, int tag, double mine) {
  double theirs = -1;
  MPI_Sendrecv(&mine, 1, MPI_DOUBLE, other, tag, &theirs, 1, MPI_DOUBLE, other, tag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  if (theirs != mine) {
    fprintf(stderr, "mpi: got %g, not %g\n", theirs, mine);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return theirs;
}

int main(int argc, char** argv) {
  enum { kRounds = 50000 };
  int level, rank, processes;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  const int all = argc == 3 && strcmp(argv[1], "all") == 0, steps = argc == 3 ? atoi(argv[2]) : 0;
  if (processes != 2 || steps <= 0 || (!all && strcmp(argv[1], "funneled") != 0) ||
      (all && level != MPI_THREAD_MULTIPLE)) {
    fprintf(
        stderr,
        "usage: mpirun -n 2 mpi funneled|all STEPS, with an MPI library that serves several threads\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int other = rank ^ 1;
  double sum = 0;
  if (all) {
#pragma omp parallel reduction(+ : sum)
    for (int step = 0; step < steps; step++) {
      const double extra = compute(kRounds) > 0 ? 1 : 0;
      sum += exchange(other, 10 + omp_get_thread_num(), step + extra);
    }
  } else {
    for (int step = 0; step < steps; step++) {
      double extra = 0;
#pragma omp parallel reduction(+ : extra)
      extra += compute(kRounds) > 0 ? 1 : 0;
      sum += exchange(other, 1, step + extra);
    }
  }
  if (rank == 0) printf("%.0f\n", sum);
  MPI_Finalize();
}
