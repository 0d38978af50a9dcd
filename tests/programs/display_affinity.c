// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMP_DISPLAY_AFFINITY=true with OMP_AFFINITY_FORMAT=%L:%a:%n/%N=%A: which regions print, and what.
// Argument: the CPUs that the members are expected at, one word per member, or "any".
#include "check.h"

#include <omp.h>

static int real_stderr;
static FILE* captured;

static void begin_capture(void) {
  fflush(stderr);
  captured = tmpfile();
  CHECK(captured != NULL, "tmpfile");
  real_stderr = dup(2);
  CHECK(dup2(fileno(captured), 2) == 2, "dup2");
}

// The lines written since begin_capture(), sorted; the affinity is cut off into `where`.
enum { kMost = 64 };
static char line[kMost][64];
static char where[kMost][64];

static int compare(const void* a, const void* b) { return strcmp(a, b); }

static int end_capture(void) {
  fflush(stderr);
  CHECK(dup2(real_stderr, 2) == 2, "dup2");
  close(real_stderr);
  rewind(captured);
  char whole[kMost][128];
  int count = 0;
  while (count < kMost && fgets(whole[count], sizeof whole[0], captured) != NULL) ++count;
  fclose(captured);
  qsort(whole, (size_t)count, sizeof whole[0], compare);
  for (int i = 0; i < count; ++i)
    CHECK(sscanf(whole[i], "%63[^ =]=%63s", line[i], where[i]) == 2, "line %s", whole[i]);
  return count;
}

static void region(int size) {
  int members = 0;
#pragma omp parallel num_threads(size) reduction(+ : members)
  ++members;
  CHECK(members == size, "%d members", members);
}

static void expect_flat(int size) {
  const int lines = end_capture();
  CHECK(lines == size, "%d lines for %d members", lines, size);
  for (int i = 0; i < size; ++i) {
    char expected[64];
    snprintf(expected, sizeof expected, "1:0:%d/%d", i, size);
    CHECK(strcmp(line[i], expected) == 0, "%s, not %s", line[i], expected);
  }
}

int main(int argc, char** argv) {
  CHECK(argc >= 2, "usage");
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);

  begin_capture();
  region(2);
  expect_flat(2);
  if (strcmp(argv[1], "any") != 0)
    for (int i = 0; i < 2; ++i)
      CHECK(strcmp(where[i], argv[1 + i]) == 0, "member %d at %s", i, where[i]);

  begin_capture();
  region(2);  // nothing has changed
  CHECK(end_capture() == 0, "told again, though nothing has changed");

  begin_capture();
  region(5);
  expect_flat(5);

  begin_capture();
  region(2);
  expect_flat(2);

  // Every inner team tells once, whichever member opens it.
  begin_capture();
#pragma omp parallel num_threads(2)
  region(3);
  const int lines = end_capture();
  CHECK(lines == 6, "%d lines of two inner teams", lines);
  for (int opener = 0; opener < 2; ++opener)
    for (int i = 0; i < 3; ++i) {
      char expected[64];
      snprintf(expected, sizeof expected, "2:%d:%d/3", opener, i);
      CHECK(strcmp(line[3 * opener + i], expected) == 0, "%s, not %s", line[3 * opener + i],
            expected);
    }

  // Worksharing and tasks print nothing.
  begin_capture();
#pragma omp parallel num_threads(2)
  {
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 100; ++i) {
#pragma omp task
      (void)i;
    }
  }
  CHECK(end_capture() == 0, "told again, though nothing has changed");
  puts("ok");
  return 0;
}
