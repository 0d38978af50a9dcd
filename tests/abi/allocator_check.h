// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the tests of allocators share.
#pragma once

#include "../programs/check.h"

#include <omp.h>
#include <stdint.h>

// The compiler may assume what omp.h says about results; the tests want to see.
#define LOOK(pointer) __asm__ volatile("" : "+r"(pointer))

__attribute__((unused)) static int aligned(const void* pointer, size_t to) {
  return ((uintptr_t)pointer & (to - 1)) == 0;
}

static omp_allocator_handle_t make(omp_memspace_handle_t space, int n,
                                   const omp_alloctrait_t* traits) {
  const omp_allocator_handle_t made = omp_init_allocator(space, n, traits);
  CHECK(made != omp_null_allocator, "omp_init_allocator refused");
  return made;
}

static void* get(size_t size, omp_allocator_handle_t a) {
  void* block = omp_alloc(size, a);
  LOOK(block);
  CHECK(block != NULL, "no %zu bytes", size);
  return block;
}

// A figure in kB of a line of /proc/self/status.
__attribute__((unused)) static long status_kb(const char* name) {
  FILE* file = fopen("/proc/self/status", "r");
  CHECK(file != NULL, "no /proc/self/status");
  char line[256];
  long value = -1;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) value = atol(line + strlen(name) + 1);
  }
  fclose(file);
  CHECK(value >= 0, "no %s", name);
  return value;
}
