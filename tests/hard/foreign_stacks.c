// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Regions that open on a stack of the program's making, which is small; members other than the opener use more than it holds.
//   foreign_stacks main|member|member_early|thread|thread_early|barrier|limit|limit_nested [MEMBERS]
// "early": the stacks were mapped before the threads', and lie above them, as a coroutine library's pool may.
#include "hard.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

enum {
  kSmall = 64 << 10,
  kGuard = 1 << 20,
  kWork = 200 << 10,
  kLimit = 512 << 10,
  kBig = 1 << 20
};  // bytes

static int members;

struct coroutine {
  ucontext_t self, caller;
  char* memory;
  int barrier;
  int regions;
  int result;
};

/// Touches `size` bytes of the stack that it is called on.
__attribute__((noinline)) static long use_stack(long size, int value) {
  volatile char* local = __builtin_alloca((size_t)size);
  long sum = 0;
  for (long i = 0; i < size; i += 512) local[i] = (char)(value & 1);
  for (long i = 0; i < size; i += 512) sum += local[i];
  return sum;
}

static int region(int team, long size, int barrier) {
  int sum = 0;
#pragma omp parallel num_threads(team) reduction(+ : sum)
  {
    const int me = omp_get_thread_num();
    if (me != 0) {
      const long found = use_stack(size, me);
      CHECK(found == (me & 1) * ((size + 511) / 512), "the stack of member %d was written to", me);
    } else {
      compute(.2);
    }
    if (barrier) {
#pragma omp barrier
      if (me != 0) use_stack(size, me);
#pragma omp barrier
    }
    sum += me + 1;
  }
  return sum;
}

static void in_coroutine(unsigned low, unsigned high) {
  struct coroutine* mine = (struct coroutine*)((unsigned long)low | (unsigned long)high << 32);
  for (int i = 0; i < mine->regions; ++i) {
    mine->result = region(members, kWork, mine->barrier);
    // To the caller and back: the next region opens in the same coroutine, later.
    swapcontext(&mine->self, &mine->caller);
  }
}

enum { kMapping = kSmall + 2 * kGuard, kEarly = 8 };
static char* early_memory;
static int early_taken;

static char* map(long count) {
  char* memory =
      mmap(NULL, (size_t)count * kMapping, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED, "no memory");
  return memory;
}

/// What lies beside the stack cannot be touched: who overruns it crashes.
static struct coroutine* new_coroutine(int regions, int barrier) {
  struct coroutine* made = calloc(1, sizeof *made);
  if (early_memory == NULL)
    made->memory = map(1);
  else
    made->memory = early_memory +
                   (long)__atomic_fetch_add(&early_taken, 1, __ATOMIC_RELAXED) % kEarly * kMapping;
  CHECK(mprotect(made->memory + kGuard, kSmall, PROT_READ | PROT_WRITE) == 0, "mprotect");
  getcontext(&made->self);
  made->self.uc_stack.ss_sp = made->memory + kGuard;
  made->self.uc_stack.ss_size = kSmall;
  made->self.uc_link = &made->caller;
  made->regions = regions;
  made->barrier = barrier;
  const unsigned long address = (unsigned long)made;
  makecontext(&made->self, (void (*)(void))in_coroutine, 2, (unsigned)address,
              (unsigned)(address >> 32));
  return made;
}

static void coroutines(int barrier) {
  enum { kCoroutines = 2, kRegions = 4 };
  struct coroutine* all[kCoroutines];
  for (int c = 0; c < kCoroutines; ++c) all[c] = new_coroutine(kRegions, barrier);
  for (int i = 0; i < kRegions; ++i)
    for (int c = 0; c < kCoroutines; ++c) {
      all[c]->result = 0;
      swapcontext(&all[c]->caller, &all[c]->self);
      CHECK(all[c]->result == members * (members + 1) / 2, "the region's sum is %d",
            all[c]->result);
    }
  for (int c = 0; c < kCoroutines; ++c) {
    if (early_memory == NULL) munmap(all[c]->memory, kMapping);
    free(all[c]);
  }
}

static void* in_thread(void* unused) {
  for (int i = 0; i < 5; ++i) {
    const int sum = region(members, kWork, i % 2);
    CHECK(sum == members * (members + 1) / 2, "the region's sum is %d", sum);
  }
  return unused;
}

static void* coroutines_in_thread(void* unused) {
  coroutines(0);
  return unused;
}

/// With stacks of the usual size.
static void usual_threads(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i)
    CHECK(pthread_create(&threads[i], NULL, coroutines_in_thread, NULL) == 0, "pthread_create");
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}

static void small_threads(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  CHECK(pthread_attr_setstacksize(&attributes, kSmall) == 0, "pthread_attr_setstacksize");
  for (int again = 0; again < 2; ++again) {
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i)
      CHECK(pthread_create(&threads[i], &attributes, in_thread, NULL) == 0, "pthread_create");
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  }
}

/// The stack's limit is lowered at run time: of members only main's own is meant.
static void limited(int nested) {
  struct rlimit limit;
  getrlimit(RLIMIT_STACK, &limit);
  limit.rlim_cur = kLimit;
  CHECK(setrlimit(RLIMIT_STACK, &limit) == 0, "setrlimit: errno %d", errno);
  for (int i = 0; i < 5; ++i) {
    int sum = 0;
    if (nested) {
#pragma omp parallel num_threads(2) reduction(+ : sum)
      sum += region(members, kBig, i % 2);
      CHECK(sum == members * (members + 1), "the regions' sum is %d", sum);
    } else {
      sum = region(members, kBig, i % 2);
      CHECK(sum == members * (members + 1) / 2, "the region's sum is %d", sum);
    }
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  members = argc > 2 ? atoi(argv[2]) : omp_get_max_threads();
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  if (is(mode, "member_early") || is(mode, "thread_early")) early_memory = map(kEarly);
  if (is(mode, "main")) {
    coroutines(0);
  } else if (is(mode, "barrier")) {
    coroutines(1);
  } else if (is(mode, "member") || is(mode, "member_early")) {
#pragma omp parallel num_threads(2)
    {
      coroutines(0);
      coroutines(1);
    }
  } else if (is(mode, "thread")) {
    small_threads();
  } else if (is(mode, "thread_early")) {
    usual_threads();
  } else if (is(mode, "limit")) {
    limited(0);
  } else if (is(mode, "limit_nested")) {
    limited(1);
  } else {
    no_such_mode();
  }
  return passed();
}
