// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenMP's allocators: allocators MODE. `abort` ends the program with libgomp's line.
#include "../programs/check.h"

#include <omp.h>
#include <stdint.h>

// The compiler may assume what omp.h says about results; the tests want to see.
#define LOOK(pointer) __asm__ volatile("" : "+r"(pointer))

static int aligned(const void* pointer, size_t to) { return ((uintptr_t)pointer & (to - 1)) == 0; }

static void fill(char* block, size_t size, int seed) {
  for (size_t i = 0; i < size; ++i) block[i] = (char)(seed + (int)(i * 7));
}
static int holds(const char* block, size_t size, int seed) {
  for (size_t i = 0; i < size; ++i)
    if (block[i] != (char)(seed + (int)(i * 7))) return 0;
  return 1;
}

static omp_allocator_handle_t make(int n, const omp_alloctrait_t* traits) {
  const omp_allocator_handle_t made = omp_init_allocator(omp_default_mem_space, n, traits);
  CHECK(made != omp_null_allocator, "omp_init_allocator refused");
  return made;
}

static void predefined(void) {
  for (uintptr_t handle = 0; handle <= 8; ++handle) {
    const omp_allocator_handle_t a = (omp_allocator_handle_t)handle;
    for (size_t size = 1; size < 100000; size = size * 3 + 1) {
      char* block = omp_alloc(size, a);
      CHECK(block != NULL && aligned(block, 16), "allocator %d: %zu bytes at %p", (int)handle, size,
            (void*)block);
      fill(block, size, 3);
      char* grown = omp_realloc(block, size * 2, a, a);
      CHECK(grown != NULL && holds(grown, size, 3), "allocator %d lost %zu bytes", (int)handle,
            size);
      omp_free(grown, a);
    }
    void* none = omp_alloc(0, a);
    LOOK(none);
    CHECK(none == NULL, "0 bytes are at %p", none);
    omp_free(NULL, a);
  }
  // The block knows its allocator.
  omp_free(omp_alloc(10, omp_large_cap_mem_alloc), omp_null_allocator);
}

static void alignments(void) {
  for (size_t to = 1; to <= 1 << 16; to *= 2) {
    char* block = omp_aligned_alloc(to, 3 * to, omp_default_mem_alloc);
    LOOK(block);
    CHECK(block != NULL && aligned(block, to), "aligned to %zu: %p", to, (void*)block);
    fill(block, 3 * to, 1);
    char* zero = omp_aligned_calloc(to, 3, to, omp_default_mem_alloc);
    LOOK(zero);
    CHECK(zero != NULL && aligned(zero, to), "aligned to %zu: %p", to, (void*)zero);
    for (size_t i = 0; i < 3 * to; ++i) CHECK(zero[i] == 0, "byte %zu is %d", i, zero[i]);
    CHECK(holds(block, 3 * to, 1), "blocks overlap");
    omp_free(block, omp_default_mem_alloc);
    omp_free(zero, omp_default_mem_alloc);

    const omp_alloctrait_t trait = {omp_atk_alignment, to};
    const omp_allocator_handle_t a = make(1, &trait);
    char* own = omp_alloc(100, a);
    LOOK(own);
    CHECK(own != NULL && aligned(own, to), "trait %zu: %p", to, (void*)own);
    fill(own, 100, 9);
    own = omp_realloc(own, 5000, a, a);
    LOOK(own);
    CHECK(own != NULL && aligned(own, to) && holds(own, 100, 9), "moved to %p", (void*)own);
    omp_free(own, a);
    omp_destroy_allocator(a);
  }
}

// A pool of 4096 bytes: what is given away in all never exceeds it, and what is freed can be had again.
static void pools(void) {
  const omp_alloctrait_t traits[] = {{omp_atk_pool_size, 4096},
                                     {omp_atk_fallback, omp_atv_null_fb}};
  const omp_allocator_handle_t a = make(2, traits);
  void* too_much = omp_alloc(4097, a);
  LOOK(too_much);
  CHECK(too_much == NULL, "more than the pool");
  for (int round = 0; round < 100; ++round) {
    char* first = omp_alloc(1500, a);
    char* second = omp_alloc(1500, a);
    char* third = omp_alloc(1500, a);
    CHECK(first != NULL && second != NULL, "round %d: the pool leaks", round);
    CHECK(third == NULL, "4500 bytes of 4096");
    fill(first, 1500, round);
    char* grown = omp_realloc(first, 3000, a, a);
    CHECK(grown == NULL, "4500 bytes of 4096");
    CHECK(holds(first, 1500, round), "a realloc that failed changed the block");
    omp_free(second, a);
    char* shrunk = omp_realloc(first, 800, a, a);
    CHECK(shrunk != NULL && holds(shrunk, 800, round), "shrinking lost the content");
    void* fits = omp_alloc(1500, a);
    CHECK(fits != NULL, "shrinking gave nothing back");
    omp_free(fits, a);
    // The pool is charged for what a block grows by: its old and its new size need not fit together.
    grown = omp_realloc(shrunk, 4000, a, a);
    CHECK(grown != NULL && holds(grown, 800, round), "800 bytes cannot grow to 4000 of 4096");
    CHECK(omp_alloc(800, a) == NULL, "4800 bytes of 4096");
    omp_free(grown, a);
  }
  // Members at once: the sum is exact.
  int got = 0;
#pragma omp parallel num_threads(8) reduction(+ : got)
  {
    for (int i = 0; i < 200; ++i) {
      void* block = omp_alloc(1000, a);
#pragma omp barrier
      if (block != NULL) ++got;
      omp_free(block, a);
#pragma omp barrier
    }
  }
  CHECK(got >= 200 * 3 && got <= 200 * 4, "%d blocks of 1000 bytes in 200 rounds of 4096", got);
  void* whole = omp_alloc(3900, a);
  CHECK(whole != NULL, "after the rounds the pool is not empty");
  omp_free(whole, a);
  omp_destroy_allocator(a);
}

static void fallbacks(void) {
  const omp_alloctrait_t last[] = {
      {omp_atk_pool_size, 4096}, {omp_atk_fallback, omp_atv_null_fb}, {omp_atk_alignment, 256}};
  const omp_allocator_handle_t b = make(3, last);
  const omp_alloctrait_t first[] = {
      {omp_atk_fb_data, b}, {omp_atk_pool_size, 1024}, {omp_atk_fallback, omp_atv_allocator_fb}};
  const omp_allocator_handle_t a = make(3, first);
  void* from_a = omp_alloc(600, a);
  void* from_b = omp_alloc(600, a);
  LOOK(from_b);
  CHECK(from_a != NULL && from_b != NULL && aligned(from_b, 256),
        "the second allocator is not asked");
  void* from_b_too = omp_alloc(2800, a);
  void* none = omp_alloc(900, a);
  CHECK(from_b_too != NULL && none == NULL, "the second allocator's pool is endless");
  omp_free(from_b_too, a);  // freed through the wrong handle: goes back to b's pool all the same
  none = omp_alloc(900, b);
  CHECK(none != NULL, "b's pool did not get it back");
  omp_free(none, b);
  omp_free(from_b, a);
  omp_free(from_a, a);
  omp_destroy_allocator(a);
  omp_destroy_allocator(b);

  const omp_alloctrait_t small = {omp_atk_pool_size, 100};
  const omp_allocator_handle_t c = make(1, &small);
  char* block = omp_alloc(100000, c);
  CHECK(block != NULL, "the default fallback is the default memory");
  fill(block, 100000, 5);
  omp_free(block, c);
  omp_destroy_allocator(c);

  // Volatile: the compiler knows that these cannot be.
  volatile size_t huge = SIZE_MAX - 10;
  void* impossible = omp_alloc(huge, omp_default_mem_alloc);
  LOOK(impossible);
  CHECK(impossible == NULL, "all of the address space");
  impossible = omp_calloc(huge / 2, 4, omp_default_mem_alloc);
  LOOK(impossible);
  CHECK(impossible == NULL, "an overflow went unnoticed");
}

static void traits(void) {
  const struct {
    int key;
    uintptr_t value;
    int good;
  } cases[] = {
      {omp_atk_alignment, 24, 0},
      {omp_atk_alignment, 0, 0},
      {omp_atk_alignment, omp_atv_default, 1},
      {omp_atk_fallback, omp_atv_private, 0},
      {omp_atk_fallback, omp_atv_default, 1},
      {omp_atk_sync_hint, omp_atv_contended, 1},
      {omp_atk_sync_hint, omp_atv_all, 0},
      {omp_atk_access, omp_atv_cgroup, 1},
      {omp_atk_access, omp_atv_interleaved, 0},
      {omp_atk_partition, omp_atv_nearest, 1},
      {omp_atk_partition, omp_atv_null_fb, 0},
      {omp_atk_pinned, omp_atv_false, 1},
      {omp_atk_pinned, 5, 0},
      {0, 1, 0},
      {99, 1, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    const omp_alloctrait_t trait = {(omp_alloctrait_key_t)cases[i].key, cases[i].value};
    const omp_allocator_handle_t a = omp_init_allocator(omp_default_mem_space, 1, &trait);
    CHECK((a != omp_null_allocator) == cases[i].good, "trait %d=%ld", cases[i].key,
          (long)cases[i].value);
    omp_destroy_allocator(a);
  }
  CHECK(omp_init_allocator((omp_memspace_handle_t)77, 0, NULL) == omp_null_allocator, "space 77");
}

static void defaults(void) {
  CHECK(omp_get_default_allocator() == omp_default_mem_alloc, "at first %ld",
        (long)omp_get_default_allocator());
  const omp_alloctrait_t aligned_trait = {omp_atk_alignment, 4096};
  const omp_allocator_handle_t a = make(1, &aligned_trait);
  omp_set_default_allocator(a);
  CHECK(omp_get_default_allocator() == a, "not the one that was set");
  void* block = omp_alloc(10, omp_null_allocator);
  LOOK(block);
  CHECK(aligned(block, 4096), "the default allocator was not asked");
  omp_free(block, omp_null_allocator);

  // Members begin with their opener's; what one sets is its own, also in its tasks, and is gone with it.
#pragma omp parallel num_threads(8)
  {
    const uintptr_t mine = 2 + (uintptr_t)omp_get_thread_num() % 7;
    CHECK(omp_get_default_allocator() == a, "a member does not inherit it");
#pragma omp barrier
    omp_set_default_allocator((omp_allocator_handle_t)mine);
#pragma omp barrier
    CHECK(omp_get_default_allocator() == (omp_allocator_handle_t)mine, "a member's is another's");
#pragma omp parallel num_threads(2)
    CHECK(omp_get_default_allocator() == (omp_allocator_handle_t)mine, "an inner member");
#pragma omp task if (0)
    {
      CHECK(omp_get_default_allocator() == (omp_allocator_handle_t)mine, "a task");
      omp_set_default_allocator(omp_default_mem_alloc);
    }
    // The scope of the variable is the implicit task.
    CHECK(omp_get_default_allocator() == omp_default_mem_alloc,
          "what its task set is not the member's");
  }
  CHECK(omp_get_default_allocator() == a, "a region leaves something behind");
  omp_set_default_allocator(omp_null_allocator);
  CHECK(omp_get_default_allocator() == omp_default_mem_alloc, "null does not set it back");
  omp_destroy_allocator(a);

  // Any number of them, one after the other.
  for (int i = 0; i < 1000; ++i) {
    const omp_allocator_handle_t next = make(1, &aligned_trait);
    omp_set_default_allocator(next);
    CHECK(omp_get_default_allocator() == next, "allocator %d cannot be the default", i);
    omp_set_default_allocator(omp_default_mem_alloc);
    omp_destroy_allocator(next);
  }
}

// More at once than there are numbers for: the default stays what it was, and that is said.
static void many_defaults(void) {
  enum { kMany = 300 };
  omp_allocator_handle_t all[kMany];
  int set = 0;
  for (int i = 0; i < kMany; ++i) {
    all[i] = make(0, NULL);
    const omp_allocator_handle_t before = omp_get_default_allocator();
    omp_set_default_allocator(all[i]);
    const omp_allocator_handle_t now = omp_get_default_allocator();
    CHECK(now == all[i] || now == before, "allocator %d is the default", i);
    if (now == all[i]) ++set;
  }
  printf("%d set\n", set);
  omp_set_default_allocator(omp_default_mem_alloc);
  for (int i = 0; i < kMany; ++i) omp_destroy_allocator(all[i]);
}

static void abort_fallback(void) {
  const omp_alloctrait_t traits[] = {{omp_atk_pool_size, 100},
                                     {omp_atk_fallback, omp_atv_abort_fb}};
  const omp_allocator_handle_t a = make(2, traits);
  void* block = omp_alloc(1000, a);
  LOOK(block);
  printf("still here\n");
}

int main(int argc, char** argv) {
  CHECK(argc == 2, "usage: allocators MODE");
  arm_watchdog(50);
  const struct {
    const char* name;
    void (*run)(void);
  } modes[] = {{"predefined", predefined},       {"alignments", alignments}, {"pools", pools},
               {"fallbacks", fallbacks},         {"traits", traits},         {"defaults", defaults},
               {"many_defaults", many_defaults}, {"abort", abort_fallback}};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i) {
    if (strcmp(argv[1], modes[i].name) != 0) continue;
    modes[i].run();
    printf("%s: ok\n", argv[1]);
    return 0;
  }
  CHECK(0, "no mode %s", argv[1]);
}
