// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program of the documents' commands: two members that open teams of two and five, until some members of these have run
// on another kernel thread than their opener's. Whatever its arguments.
#include <omp.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REGIONS = 50, MEMBERS = 2, ELSEWHERE = 3 };

int main(void) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  long members = 0, expected = 0;
  int elsewhere = 0;
  for (int region = 0; region < REGIONS || elsewhere < ELSEWHERE; ++region) {
#pragma omp parallel num_threads(MEMBERS) reduction(+ : members, elsewhere)
    {
      const long opener = syscall(SYS_gettid);
#pragma omp parallel num_threads(2 + 3 * omp_get_thread_num()) reduction(+ : members, elsewhere)
      {
        ++members;
        if (syscall(SYS_gettid) != opener) ++elsewhere;
        for (volatile int i = 0; i < 2000; ++i) {
        }
      }
    }
    expected += 2 + 5;
  }
  if (members != expected) printf("%ld members, %ld expected\n", members, expected);
  return members != expected;
}
