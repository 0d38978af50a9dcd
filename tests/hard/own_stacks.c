// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every second member has an alternate signal stack; its handlers compute there for long, and nobody else gets it.
//   own_stacks flat|nested [MEMBERS]
#include "hard.h"

#include <sys/mman.h>

enum { kStack = 128 << 10, kLocal = 32 << 10, kRounds = 4 };

static char* stacks;
static char* volatile my_stack;
static volatile int my_number = -1;
static volatile sig_atomic_t my_runs;
#pragma omp threadprivate(my_stack, my_number, my_runs)

static void on_own_stack(int number) {
  (void)number;
  volatile unsigned char local[kLocal];
  const char* here = (const char*)local;
  CHECK(my_number >= 0, "the handler runs in a member that raised nothing");
  CHECK(here > my_stack && here < my_stack + kStack,
        "the handler of member %d runs outside of its stack", my_number);
  for (int i = 0; i < kLocal; ++i) local[i] = (unsigned char)(my_number + i);
  const int before = my_number;
  compute(20);
  CHECK(my_number == before, "the handler became member %d's", my_number);
  for (int i = 0; i < kLocal; ++i)
    CHECK(local[i] == (unsigned char)(before + i),
          "somebody wrote to the stack of member %d's handler", before);
  ++my_runs;
}

static void on_thread_stack(int number) {
  (void)number;
  char local;
  CHECK(&local < stacks || &local >= stacks + 256L * kStack,
        "a handler without SA_ONSTACK runs on an alternate stack");
  compute(3);
  ++my_runs;
}

static void expect_stack(const char* wanted, const char* where) {
  stack_t found;
  CHECK(sigaltstack(NULL, &found) == 0, "sigaltstack: errno %d", errno);
  if (wanted == NULL)
    CHECK(found.ss_flags & SS_DISABLE, "%s: a member that has set no alternate stack has one at %p",
          where, found.ss_sp);
  else
    CHECK(!(found.ss_flags & SS_DISABLE) && found.ss_sp == wanted,
          "%s: the alternate stack is %p, not %p", where, found.ss_sp, (const void*)wanted);
}

static void member(int me, int team) {
  const int has_one = me % 2;
  char* stack = has_one ? stacks + (long)me * kStack : NULL;
  expect_stack(NULL, "at the begin");
  if (has_one) {
    const stack_t own = {.ss_sp = stack, .ss_size = kStack};
    CHECK(sigaltstack(&own, NULL) == 0, "sigaltstack: errno %d", errno);
  }
  my_stack = stack;
  my_number = me;
  my_runs = 0;
  for (int round = 0; round < kRounds && round * team < 64; ++round) {
    const int before = my_runs;
    raise(has_one ? SIGUSR1 : SIGUSR2);
    CHECK(my_runs == before + 1, "raise() returned, and the handler has run %d times",
          my_runs - before);
    expect_stack(stack, "after the handler");
    if (!has_one) compute(5);
#pragma omp barrier
    expect_stack(stack, "after a barrier");
  }
  if (has_one) {
    const stack_t none = {.ss_flags = SS_DISABLE};
    CHECK(sigaltstack(&none, NULL) == 0, "sigaltstack: errno %d", errno);
  }
  my_number = -1;
}

static void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  CHECK(sigaction(number, &action, NULL) == 0, "sigaction: errno %d", errno);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const int members = argc > 2 ? atoi(argv[2]) : omp_get_max_threads();
  stacks = mmap(NULL, 256L * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(stacks != MAP_FAILED && members <= 128, "no memory");
  handle(SIGUSR1, on_own_stack, SA_ONSTACK);
  handle(SIGUSR2, on_thread_stack, 0);
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  for (int again = 0; again < 2; ++again) {
    if (is(mode, "flat")) {
#pragma omp parallel num_threads(members)
      member(omp_get_thread_num(), members);
    } else if (is(mode, "nested")) {
      const int inner = members / 2 > 0 ? members / 2 : 1;
#pragma omp parallel num_threads(2)
      {
        const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(inner)
        member(outer * inner + omp_get_thread_num(), members);
      }
    } else {
      no_such_mode();
    }
  }
  return passed();
}
