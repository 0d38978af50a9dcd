// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program whose only malloc is made of bosk_malloc(): from the first block that the loader asks for, in threads, regions
// and children.
#include "bosk_check.h"

#include <bosk/memory.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { ROUNDS = 4000, SLOTS = 64 };

static atomic_long strangers;

void* malloc(size_t bytes) { return bosk_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return bosk_calloc(count, bytes); }
void* realloc(void* block, size_t bytes) { return bosk_realloc(block, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) { return bosk_aligned_alloc(alignment, bytes); }
void* memalign(size_t alignment, size_t bytes) { return bosk_aligned_alloc(alignment, bytes); }
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  *block = bosk_aligned_alloc(alignment, bytes);
  return *block != NULL ? 0 : ENOMEM;
}
size_t malloc_usable_size(void* block) { return bosk_malloc_size(block); }
void free(void* block) {
  if (bosk_free(block) != BOSK_OK) ++strangers;
}

static void churn(unsigned seed) {
  unsigned char* slot[SLOTS] = {0};
  unsigned x = seed;
  for (int i = 0; i < ROUNDS; ++i) {
    x = x * 1103515245 + 12345;
    unsigned char** at = &slot[(x >> 8) % SLOTS];
    const size_t bytes = (x >> 16) % 64 == 0 ? (x >> 10) % (3 << 20) + 1 : (x >> 16) % 2000 + 1;
    if (*at == NULL) {
      *at = malloc(bytes);
    } else if (x % 3 == 0) {
      unsigned char before = **at;
      *at = realloc(*at, bytes);
      CHECK(*at != NULL && **at == before, "realloc to %zu", bytes);
    } else {
      CHECK(malloc_usable_size(*at) != 0, "no block of ours");
      free(*at);
      *at = x % 5 == 0 ? aligned_alloc((size_t)16 << (x >> 28), bytes) : NULL;
    }
    if (*at != NULL) **at = (unsigned char)i;
  }
  for (int i = 0; i < SLOTS; ++i) free(slot[i]);
}

static void* churn_thread(void* seed) {
  churn((unsigned)(uintptr_t)seed);
  return NULL;
}

static void all_of_it(void) {
  pthread_t pthread[4];
  for (uintptr_t i = 0; i < 4; ++i)
    CHECK(pthread_create(&pthread[i], NULL, churn_thread, (void*)(i + 1)) == 0, "pthread_create");
#pragma omp parallel num_threads(3)
#pragma omp parallel num_threads(2)
  churn((unsigned)(uintptr_t)pthread_self());
  for (int i = 0; i < 4; ++i) pthread_join(pthread[i], NULL);
}

int main(void) {
  all_of_it();
  void* library = dlopen("libm.so.6", RTLD_NOW);
  CHECK(library != NULL && dlsym(library, "no_such_name") == NULL && dlerror() != NULL, "dlopen");
  dlclose(library);
  for (int round = 0; round < 3; ++round) {
    const pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) {
      all_of_it();
      exit(strangers == 0 ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child failed: %x", status);
  }
  CHECK(strangers == 0, "%ld blocks were given back that nobody gave out", (long)strangers);
  return passed();
}
