// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Heat conduction and advection in two dimensions, in stripes: the application of Thibault 2005, section 5.
//
// The mesh is cut into horizontal stripes, one for each member of the outer team; a stripe opens an inner
// team over its rows in every step. Stripes need only their neighbours' edge rows, so a step ends with a
// barrier of the outer team: inner teams meet first, then the stripes. Nothing but OpenMP is used, the
// stripes are the hint that threads of an inner team belong together.
//
//   conduction [columns rows steps stripes threads-per-stripe]
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  int columns, rows;
  double* now;  // (rows + 2) x (columns + 2): a border of fixed temperature around the mesh
  double* next;
} Mesh;

static const double kConductivity = 0.12;           // times dt / h^2; stable below 0.25
static const double kWindX = 0.21, kWindY = -0.13;  // Courant numbers of the flow

static void* allocate(size_t bytes) {
  void* block = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
  if (!block) {
    fprintf(stderr, "conduction: no memory for %zu bytes\n", bytes);
    exit(1);
  }
  return block;
}

static double* row_of(const Mesh* mesh, double* values, int row) {
  return values + (size_t)row * (size_t)(mesh->columns + 2);
}

static void initialise_row(const Mesh* mesh, int row) {
  double* now = row_of(mesh, mesh->now, row);
  double* next = row_of(mesh, mesh->next, row);
  for (int c = 0; c <= mesh->columns + 1; ++c) {
    double x = (double)c / (mesh->columns + 1), y = (double)row / (mesh->rows + 1);
    int border = row == 0 || row == mesh->rows + 1 || c == 0 || c == mesh->columns + 1;
    double hot = exp(-80 * ((x - 0.3) * (x - 0.3) + (y - 0.6) * (y - 0.6)));
    double cold = exp(-50 * ((x - 0.7) * (x - 0.7) + (y - 0.3) * (y - 0.3)));
    now[c] = next[c] = border ? x : x + hot - 0.5 * cold;
  }
}

/// One time step of one row: five-point conduction and upwind advection.
static void step_row(const Mesh* mesh, const double* from, double* to, int row) {
  size_t pitch = (size_t)mesh->columns + 2;
  const double* here = from + (size_t)row * pitch;
  const double* above = here - pitch;
  const double* below = here + pitch;
  double* out = to + (size_t)row * pitch;
  for (int c = 1; c <= mesh->columns; ++c) {
    double conduction = above[c] + below[c] + here[c - 1] + here[c + 1] - 4 * here[c];
    double advection_x = kWindX * (here[c] - here[c - 1]);  // wind from the left
    double advection_y = kWindY * (below[c] - here[c]);     // and from below
    out[c] = here[c] + kConductivity * conduction - advection_x - advection_y;
  }
}

static void run_nested(Mesh* mesh, int steps, int stripes, int threads) {
  double* buffer[2] = {mesh->now, mesh->next};
#pragma omp parallel num_threads(stripes)
  {
    int stripe = omp_get_thread_num(), count = omp_get_num_threads();
    int first = 1 + (int)((long)mesh->rows * stripe / count);
    int last = (int)((long)mesh->rows * (stripe + 1) / count);
    // First touch by the threads that will work on the rows; the borders go to the outermost stripes.
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int row = first - (stripe == 0); row <= last + (stripe == count - 1); ++row)
      initialise_row(mesh, row);
#pragma omp barrier
    for (int step = 0; step < steps; ++step) {
      const double* from = buffer[step % 2];
      double* to = buffer[(step + 1) % 2];
#pragma omp parallel for num_threads(threads) schedule(static)
      for (int row = first; row <= last; ++row) step_row(mesh, from, to, row);
#pragma omp barrier
    }
  }
}

static void run_sequential(Mesh* mesh, int steps) {
  double* buffer[2] = {mesh->now, mesh->next};
  for (int row = 0; row <= mesh->rows + 1; ++row) initialise_row(mesh, row);
  for (int step = 0; step < steps; ++step)
    for (int row = 1; row <= mesh->rows; ++row)
      step_row(mesh, buffer[step % 2], buffer[(step + 1) % 2], row);
}

static int argument(int argc, char** argv, int index, int otherwise, int smallest) {
  int value = argc > index ? atoi(argv[index]) : otherwise;
  if (value < smallest) {
    fprintf(stderr, "usage: conduction [columns rows steps stripes threads-per-stripe]\n");
    exit(2);
  }
  return value;
}

int main(int argc, char** argv) {
  int columns = argument(argc, argv, 1, 256, 1), rows = argument(argc, argv, 2, 256, 1);
  int steps = argument(argc, argv, 3, 1500, 0);
  int stripes = argument(argc, argv, 4, 4, 1), threads = argument(argc, argv, 5, 4, 1);
  size_t bytes = sizeof(double) * (size_t)(columns + 2) * (size_t)(rows + 2);
  Mesh mesh = {columns, rows, allocate(bytes), allocate(bytes)};
  Mesh reference = {columns, rows, allocate(bytes), allocate(bytes)};

  omp_set_max_active_levels(2);
  double start = omp_get_wtime();
  run_nested(&mesh, steps, stripes, threads);
  double elapsed = omp_get_wtime() - start;
  run_sequential(&reference, steps);

  const double* result = steps % 2 ? mesh.next : mesh.now;
  const double* expected = steps % 2 ? reference.next : reference.now;
  double checksum = 0, worst = 0;
  for (size_t i = 0; i < (size_t)(columns + 2) * (size_t)(rows + 2); ++i) {
    checksum += result[i];
    double difference = fabs(result[i] - expected[i]);
    if (!(difference <= worst)) worst = difference;  // also when it is not a number
  }
  printf("%d x %d points, %d steps, %d stripes of %d threads\n", columns, rows, steps, stripes,
         threads);
  printf("checksum: %.12e\n", checksum);
  printf("time: %.3f s\n", elapsed);
  free(mesh.now);
  free(mesh.next);
  free(reference.now);
  free(reference.next);
  if (!(worst <= 1e-12)) {
    printf("conduction: the result differs from the sequential one by %g\n", worst);
    return 1;
  }
  return 0;
}
