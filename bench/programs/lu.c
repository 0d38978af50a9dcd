// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LU factorisation of a matrix in square blocks, without pivots (it is diagonally dominant): what Goglin 2009 (section 6)
// runs on next-touch. At each step the trailing blocks are dealt out anew over the team, so those who work on a block
// change, and pages that stay where they were touched first become remote. Without marks nothing is done about that.
//
//   lu SIZE BLOCK THREADS [MARKS]    ms of a factorisation; 1 thread: sequential. So many times on its way the matrix
//                                    is marked for next-touch, by bosk's hints
//
// Checked against the matrix, by L U x and A x for vectors x. Where BOSK_LAB_OBJECTS names a file, it gets a line for the
// matrix, and one factorisation is counted (bosk lab --locality=objects, docs/locality.md).
#include <math.h>
#include <omp.h>
#include <sys/mman.h>

#include <bosk/hints.h>
#include <bosk/markers.h>

#include "bench.h"

static int size, side, blocks;  // of the matrix, of a block, blocks in a row
static int marks;               // 0: none
static double* original;
static double* matrix;  // blocks one after the other, row by row; each row by row

static double* block_of(double* of, int row, int column) {
  return of + ((long)row * blocks + column) * side * side;
}

static double element(int row, int column) {
  const unsigned mixed = (unsigned)row * 2654435761u ^ (unsigned)column * 2246822519u;
  const double small = (double)(mixed >> 8 & 0xffff) / 65536 - 0.5;
  return row == column ? size : small;
}

static double* map_matrix(void) {
  void* made = mmap(NULL, (size_t)size * (size_t)size * sizeof(double), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) bench_fail("lu: out of memory");
  return made;
}

static void fill_block(double* of, int row, int column) {
  double* block = block_of(of, row, column);
  for (int i = 0; i < side; i++)
    for (int j = 0; j < side; j++) block[i * side + j] = element(row * side + i, column * side + j);
}

static void factor_diagonal(double* a) {
  for (int k = 0; k < side; k++)
    for (int i = k + 1; i < side; i++) {
      const double factor = a[i * side + k] /= a[k * side + k];
      for (int j = k + 1; j < side; j++) a[i * side + j] -= factor * a[k * side + j];
    }
}

/// Right of the diagonal: L of the diagonal block, from the left.
static void solve_row(const double* diagonal, double* a) {
  for (int k = 0; k < side; k++)
    for (int i = k + 1; i < side; i++) {
      const double factor = diagonal[i * side + k];
      for (int j = 0; j < side; j++) a[i * side + j] -= factor * a[k * side + j];
    }
}

/// Below it: U of the diagonal block, from the right.
static void solve_column(const double* diagonal, double* a) {
  for (int i = 0; i < side; i++)
    for (int k = 0; k < side; k++) {
      const double value = a[i * side + k] /= diagonal[k * side + k];
      for (int j = k + 1; j < side; j++) a[i * side + j] -= value * diagonal[k * side + j];
    }
}

static void subtract_product(const double* restrict l, const double* restrict u,
                             double* restrict a) {
  for (int i = 0; i < side; i++)
    for (int k = 0; k < side; k++) {
      const double factor = l[i * side + k];
      for (int j = 0; j < side; j++) a[i * side + j] -= factor * u[k * side + j];
    }
}

/// Blocks that are done are marked, too: nobody touches them, so they stay.
static void mark_if_due(int k) {
  if (marks == 0 || k % ((blocks + marks - 1) / marks) != 0) return;
  if (bosk_next_touch(BOSK_NEXT_TEAM) < 0) bench_fail("lu: bosk_next_touch");
}

static void factorise(int threads) {
  for (int k = 0; k < blocks; k++) {
    mark_if_due(k);
    double* diagonal = block_of(matrix, k, k);
    factor_diagonal(diagonal);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for nowait schedule(static)
      for (int j = k + 1; j < blocks; j++) solve_row(diagonal, block_of(matrix, k, j));
#pragma omp for schedule(static)
      for (int i = k + 1; i < blocks; i++) solve_column(diagonal, block_of(matrix, i, k));
#pragma omp for collapse(2) schedule(static)
      for (int i = k + 1; i < blocks; i++)
        for (int j = k + 1; j < blocks; j++)
          subtract_product(block_of(matrix, i, k), block_of(matrix, k, j), block_of(matrix, i, j));
    }
  }
}

static void reset(int threads) {
#pragma omp parallel for collapse(2) schedule(static) num_threads(threads) if (threads > 1)
  for (int i = 0; i < blocks; i++)
    for (int j = 0; j < blocks; j++)
      memcpy(block_of(matrix, i, j), block_of(original, i, j),
             (size_t)side * (size_t)side * sizeof(double));
}

static double at(const double* of, int row, int column) {
  return of[((long)(row / side) * blocks + column / side) * side * side +
            (long)(row % side) * side + column % side];
}

static void check(void) {
  double* x = malloc((size_t)size * sizeof *x);
  double* ux = malloc((size_t)size * sizeof *ux);
  if (x == NULL || ux == NULL) bench_fail("lu: out of memory");
  for (int try = 0; try < 3; try++) {
    for (int i = 0; i < size; i++) x[i] = 1 + (i * 7 + try * 3) % 5;
    for (int i = 0; i < size; i++) {
      ux[i] = 0;
      for (int j = i; j < size; j++) ux[i] += at(matrix, i, j) * x[j];
    }
    for (int i = 0; i < size; i++) {
      double got = ux[i], wanted = 0;
      for (int j = 0; j < i; j++) got += at(matrix, i, j) * ux[j];
      for (int j = 0; j < size; j++) wanted += element(i, j) * x[j];
      if (!(fabs(got - wanted) <= 1e-9 * size * fabs(wanted))) bench_fail("lu: L U is not A");
    }
  }
  free(x);
  free(ux);
}

static double run(void* context, long count) {
  double took = 0;
  for (long i = 0; i < count; i++) {
    reset(*(int*)context);
    const double start = now_ns();
    factorise(*(int*)context);
    took += now_ns() - start;
  }
  return took;
}

static void use_marks(const char* text) {
  marks = atoi(text);
  if (marks <= 0) bench_fail("lu: marks are a positive number");
  if (!(bosk_attach)) bench_fail("lu: this libgomp is not bosk");
  if (bosk_attach(BOSK_NEXT_TEAM, matrix, (size_t)size * (size_t)size * sizeof(double),
                  BOSK_READS_AND_WRITES, 0) != 0)
    bench_fail("lu: bosk_attach");
}

static void tell_matrix(const char* path) {
  FILE* file = fopen(path, "a");
  if (file == NULL) bench_fail("lu: BOSK_LAB_OBJECTS names a file that cannot be written");
  fprintf(file, "%p %zu matrix\n", (void*)matrix, (size_t)size * (size_t)size * sizeof(double));
  fclose(file);
}

int main(int argc, char** argv) {
  size = bench_int(argc, argv, 1);
  side = bench_int(argc, argv, 2);
  int threads = bench_int(argc, argv, 3);
  if (size % side != 0) bench_fail("lu: blocks do not fill the matrix");
  blocks = size / side;
  omp_set_dynamic(0);
  original = map_matrix();
  matrix = map_matrix();
  for (int i = 0; i < blocks; i++)
    for (int j = 0; j < blocks; j++) fill_block(original, i, j);
  if (argc > 4) use_marks(argv[4]);
  const char* counted = getenv("BOSK_LAB_OBJECTS");
  if (counted != NULL) tell_matrix(counted);
  reset(threads);
  BOSK_LAB_MARK(BOSK_LAB_OBJECTS);
  BOSK_LAB_MARK(BOSK_LAB_BEGIN);
  factorise(threads);
  BOSK_LAB_MARK(BOSK_LAB_END);
  check();
  if (counted != NULL) return 0;
  bench_print("lu", bench_measure(run, &threads) / 1e6, "ms");
  return 0;
}
