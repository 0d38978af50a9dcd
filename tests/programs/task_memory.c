// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of queued tasks. million THREADS: one thread creates a million tasks, which runs in bounded memory;
// queued THREADS: all threads fill their queues and nobody runs anything, what does a task take?
#include "check.h"

#include <omp.h>

static long memory_kib(const char* what) {
  FILE* file = fopen("/proc/self/status", "r");
  CHECK(file != NULL, "no /proc/self/status");
  char line[256];
  long kib = -1;
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, what, strlen(what)) == 0) kib = atol(line + strlen(what));
  fclose(file);
  CHECK(kib > 0, "no %s in /proc/self/status", what);
  return kib;
}

static long ran;

/// 24 bytes of data each.
static void create(long tasks) {
  const long one = 1;
  long* const sum = &ran;
  for (long i = 0; i < tasks; ++i) {
#pragma omp task firstprivate(i, one, sum)
    __atomic_fetch_add(sum, i >= 0 ? one : 0, __ATOMIC_RELAXED);
  }
}

static void million(int threads) {
  enum { kTasks = 1000000, kWarm = 20000, kMostKib = 4096 };
  ran = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
  {
    create(kWarm);
#pragma omp taskwait
    const long before = memory_kib("VmHWM:");
    create(kTasks);
#pragma omp taskwait
    const long grown = memory_kib("VmHWM:") - before;
    CHECK(grown <= kMostKib, "%d tasks took %ld KiB at most", kTasks, grown);
  }
  CHECK(ran == kTasks + kWarm, "%ld tasks ran", ran);
}

static void queued(int threads) {
  enum { kMost = 128 + 24, kKibPerThread = 48 };  // and what a thread takes once: queue, stack
  const long each = 64l * (threads < 64 ? threads : 64);  // bosk queues so many
  long filled = 0, left = 0;
  ran = 0;
#pragma omp parallel num_threads(threads) shared(filled)
  {
#pragma omp barrier
    const long before = memory_kib("VmRSS:");
#pragma omp barrier
    create(each);
    __atomic_fetch_add(&filled, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&filled, __ATOMIC_ACQUIRE) < threads) usleep(500);
    if (omp_get_thread_num() == 0) {
      left = threads * each - __atomic_load_n(&ran, __ATOMIC_RELAXED);
      const long grown = memory_kib("VmRSS:") - before;
      printf("%ld tasks queued, %ld run: %.1f bytes each\n", left, ran, 1024.0 * grown / left);
      CHECK(left > threads * each / 2, "only %ld are queued", left);
      CHECK(grown <= left * kMost / 1024 + threads * kKibPerThread, "%ld KiB for %ld tasks", grown,
            left);
      __atomic_fetch_add(&filled, 1, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(&filled, __ATOMIC_ACQUIRE) <= threads) usleep(500);
  }
  CHECK(ran == threads * each, "%ld tasks ran", ran);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "million";
  const int threads = argc > 2 ? atoi(argv[2]) : 2;
  omp_set_dynamic(0);
  if (strcmp(mode, "million") == 0)
    million(threads);
  else
    queued(threads);
  return passed();
}
