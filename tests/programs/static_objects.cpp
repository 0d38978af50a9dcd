// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Regions before and after main: in constructors and destructors of static objects, in exit handlers, and
// in destructors of thread-local objects of the program's threads and of members.
#include <omp.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "check.h"

namespace {

int members(int outer, int inner) {
  int sum = 0;
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(outer) reduction(+ : sum)
  {
#pragma omp barrier
#pragma omp parallel num_threads(inner) reduction(+ : sum)
    sum++;
  }
  long tasks = 0;
#pragma omp parallel num_threads(outer)
#pragma omp single
#pragma omp taskloop grainsize(1) reduction(+ : tasks)
  for (int i = 0; i < 20; ++i) tasks += i;
  if (tasks != 190) return -1;
  return sum;
}

void check(const char* when) {
  const int got = members(4, 3);
  if (got != 12) {
    std::printf("%s: %d members\n", when, got);
    std::fflush(stdout);
    _exit(9);
  }
}

int at_exit_calls = 0;

struct Static {
  explicit Static(const char* text) : name(text) { check(text); }
  ~Static() {
    check(name);
    // The first one made goes last.
    if (name[0] == 'f') {
      std::printf(at_exit_calls == 3 ? "all ended\n" : "handlers are missing\n");
      std::fflush(stdout);
      _exit(at_exit_calls == 3 ? 7 : 8);
    }
  }
  const char* name;
};

Static first{"first"};
Static second{"second"};

struct Local {
  bool made = false;
  void make() { made = true; }
  ~Local() {
    if (made) check("thread-local");
  }
};
thread_local Local local;

void at_exit() {
  ++at_exit_calls;
  check("exit handler");
}

}  // namespace

int main() {
  std::atexit(at_exit);
  std::atexit(at_exit);
  std::at_quick_exit(at_exit);
  check("main");
  std::thread other([] {
    local.make();
    check("thread");
  });
  other.join();
#pragma omp parallel num_threads(3)
  local.make();
  static Static inner{"inner"};
  std::atexit(at_exit);
  std::thread left_behind([] {
    check("left behind");
    for (;;) pause();
  });
  left_behind.detach();
  return passed();  // 7 comes from the last destructor
}
