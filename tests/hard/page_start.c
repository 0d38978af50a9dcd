// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members compute in code that a program has made at the begin of a page, as just-in-time compilers do: before it there is nothing.
//   page_start [MEMBERS]
#include "hard.h"

#include <sys/mman.h>

/// int count(int n): n times around its own first instruction.
static const unsigned char code[] = {
#if defined(__x86_64__)
    0xff, 0xcf,  // 1: dec %edi
    0x75, 0xfc,  // jne 1b
    0x89, 0xf8,  // mov %edi, %eax
    0xc3,        // ret
#elif defined(__aarch64__)
    0x00, 0x04, 0x00, 0x71,  // 1: subs w0, w0, #1
    0xe1, 0xff, 0xff, 0x54,  // b.ne 1b
    0xc0, 0x03, 0x5f, 0xd6,  // ret
#endif
};

typedef int (*Count)(int);

static Count make_code(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED, "mmap: errno %d", errno);
  memcpy(pages + page, code, sizeof code);
  CHECK(mprotect(pages + page, page, PROT_READ | PROT_EXEC) == 0, "mprotect: errno %d", errno);
  CHECK(mprotect(pages, page, PROT_NONE) == 0, "mprotect: errno %d", errno);
  __builtin___clear_cache(pages + page, pages + page + sizeof code);
  Count count;
  char* start = pages + page;
  memcpy(&count, &start, sizeof count);
  return count;
}

int main(int argc, char** argv) {
  const int members = argc > 1 ? atoi(argv[1]) : omp_get_max_threads();
  const Count count = make_code();
  int ended = 0;
#pragma omp parallel num_threads(members) reduction(+ : ended)
  for (int round = 0; round < 8; ++round) {
    ended += count(1 << 24) == 0;
#pragma omp barrier
  }
  CHECK(ended == 8 * members, "%d of %d loops ended as they are to", ended, 8 * members);
  return passed();
}
