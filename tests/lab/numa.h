// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the kernel says of threads and pages, for programs that run in the lab. No library.
#pragma once

#include "../programs/check.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { kMostNodes = 64, kPage = 4096 };

/// CPU and node that the caller runs on.
static inline void where_am_i(unsigned* cpu, unsigned* node) {
  CHECK(syscall(SYS_getcpu, cpu, node, NULL) == 0, "getcpu: %s", strerror(errno));
  CHECK(*node < kMostNodes, "node %u", *node);
}

/// Memory that has no pages yet.
static inline char* fresh_memory(size_t bytes) {
  char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED, "%zu bytes: %s", bytes, strerror(errno));
  return memory;
}

/// The same where several threads each touch pages of their own first, or the test itself moves some: the kernel would put
/// whole huge ones where the first of them is.
static inline char* fresh_small_pages(size_t bytes) {
  char* memory = fresh_memory(bytes);
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  return memory;
}

/// The node of each page from `memory` on; -ENOENT: it has not been touched.
static inline void nodes_of_pages(char* memory, size_t pages, int* nodes) {
  void** addresses = malloc(pages * sizeof *addresses);
  CHECK(addresses != NULL, "no memory for %zu addresses", pages);
  for (size_t i = 0; i < pages; ++i) addresses[i] = memory + i * kPage;
  CHECK(syscall(SYS_move_pages, 0, pages, addresses, NULL, nodes, 0) == 0, "move_pages: %s",
        strerror(errno));
  free(addresses);
}
