// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that is locked, or may not be: allocator_pinned MODE. `abort` ends the program with libgomp's line.
#include "allocator_check.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static omp_allocator_handle_t pinned_allocator(uintptr_t fallback) {
  const omp_alloctrait_t traits[] = {{omp_atk_pinned, omp_atv_true}, {omp_atk_fallback, fallback}};
  return make(omp_default_mem_space, 2, traits);
}

// Limits on locked memory do not hold for root.
static void become_ordinary(rlim_t locked) {
  const struct rlimit limit = {locked, locked};
  CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "setrlimit: %s", strerror(errno));
  if (geteuid() == 0) CHECK(setresuid(65534, 65534, 65534) == 0, "setresuid: %s", strerror(errno));
}

static void pinned(void) {
  const struct rlimit limit = {8 << 20, 8 << 20};
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) exit(77);
  const long before = status_kb("VmLck");
  const omp_allocator_handle_t a = pinned_allocator(omp_atv_null_fb);
  char* large = get(1 << 20, a);
  CHECK(status_kb("VmLck") - before >= 1024, "%ld kB are locked", status_kb("VmLck"));
  // All of it is there before it was touched.
  unsigned char there[256] = {0};
  char* page = (char*)(((uintptr_t)large + 4095) & ~(uintptr_t)4095);
  CHECK(mincore(page, 255 * 4096, there) == 0, "mincore: %s", strerror(errno));
  for (int i = 0; i < 255; ++i) CHECK(there[i] & 1, "page %d is not in memory", i);
  omp_free(large, a);
  CHECK(status_kb("VmLck") == before, "%ld kB are still locked", status_kb("VmLck") - before);
  // Small ones share locked pages.
  char* small_blocks[100];
  for (int i = 0; i < 100; ++i) memset(small_blocks[i] = get(100, a), i, 100);
  const long locked = status_kb("VmLck") - before;
  CHECK(locked >= 20 && locked < 200, "%ld kB are locked for 100 blocks of 100 bytes", locked);

  // A child does not inherit locks, so blocks of its own are not among the parent's.
  const pid_t child = fork();
  if (child == 0) {
    CHECK(status_kb("VmLck") == 0, "locks are inherited");
    char* own = get(100, a);
    CHECK(status_kb("VmLck") >= 4, "a child's block is not locked");
    memset(own, 1, 100);
    for (int i = 0; i < 100; ++i) {
      CHECK(small_blocks[i][99] == i, "block %d is not what it was", i);
      omp_free(small_blocks[i], a);
    }
    omp_free(own, a);
    omp_free(get(1 << 20, a), a);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with %x", status);
  for (int i = 0; i < 100; ++i) omp_free(small_blocks[i], a);
  omp_destroy_allocator(a);
  CHECK(status_kb("VmLck") == before, "%ld kB are still locked", status_kb("VmLck") - before);
}

// The kernel refuses to lock: each fallback does what it is for.
static void pinned_refused(void) {
  become_ordinary(0);
  omp_allocator_handle_t a = pinned_allocator(omp_atv_null_fb);
  for (size_t size = 1; size < 1000000; size *= 10) {
    void* none = omp_alloc(size, a);
    LOOK(none);
    CHECK(none == NULL, "%zu bytes were locked", size);
  }
  omp_destroy_allocator(a);
  a = pinned_allocator(omp_atv_default_mem_fb);
  char* block = get(100000, a);
  memset(block, 1, 100000);
  CHECK(status_kb("VmLck") == 0, "%ld kB are locked", status_kb("VmLck"));
  omp_free(block, a);
  omp_destroy_allocator(a);

  const omp_alloctrait_t second[] = {
      {omp_atk_alignment, 512}, {omp_atk_pool_size, 5000}, {omp_atk_fallback, omp_atv_null_fb}};
  const omp_allocator_handle_t b = make(omp_default_mem_space, 3, second);
  const omp_alloctrait_t first[] = {{omp_atk_pinned, omp_atv_true},
                                    {omp_atk_fallback, omp_atv_allocator_fb},
                                    {omp_atk_fb_data, b}};
  a = make(omp_default_mem_space, 3, first);
  block = get(3000, a);
  CHECK(aligned(block, 512), "not from the second allocator: %p", (void*)block);
  void* none = omp_alloc(3000, a);
  LOOK(none);
  CHECK(none == NULL, "the second allocator's pool is endless");
  omp_free(block, a);
  omp_destroy_allocator(a);
  omp_destroy_allocator(b);
}

// A limit that has room for a page, but not for a chunk of small blocks.
static void pinned_little(void) {
  become_ordinary(3 * 4096);
  const omp_allocator_handle_t a = pinned_allocator(omp_atv_null_fb);
  for (int round = 0; round < 100; ++round) {
    char* one = get(1000, a);
    char* two = get(1000, a);
    memset(one, 1, 1000);
    memset(two, 2, 1000);
    void* none = omp_alloc(20000, a);
    LOOK(none);
    CHECK(none == NULL, "more than the limit");
    CHECK(one[999] == 1, "blocks overlap");
    omp_free(one, a);
    omp_free(two, a);
  }
  omp_destroy_allocator(a);
}

static void pinned_abort(void) {
  become_ordinary(0);
  void* block = omp_alloc(1000, pinned_allocator(omp_atv_abort_fb));
  LOOK(block);
  printf("still here\n");
}

int main(int argc, char** argv) {
  CHECK(argc == 2, "usage: allocator_pinned MODE");
  arm_watchdog(50);
  const struct {
    const char* name;
    void (*run)(void);
  } modes[] = {{"allowed", pinned},
               {"refused", pinned_refused},
               {"little", pinned_little},
               {"abort", pinned_abort}};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i) {
    if (strcmp(argv[1], modes[i].name) != 0) continue;
    modes[i].run();
    printf("%s: ok\n", argv[1]);
    return 0;
  }
  CHECK(0, "no mode %s", argv[1]);
}
