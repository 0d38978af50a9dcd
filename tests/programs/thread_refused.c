// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel refuses a thread that a region cannot do without: one line and status 1, neither a smaller
// team nor a hang.
//   thread_refused first|flat|nested|at-once
#include "check.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <omp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/// From here on no thread of the process gets another one.
static void refuse_threads(void) {
  static struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof code[0], code};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS: errno %d", errno);
  CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0,
        "seccomp: errno %d", errno);
}

static int members(int threads) {
  int count = 0;
#pragma omp parallel num_threads(threads) reduction(+ : count)
  {
#pragma omp barrier
    count++;
  }
  return count;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  int count = 0;
  if (strcmp(mode, "first") == 0) {
    refuse_threads();
    count = members(2);
  } else if (strcmp(mode, "flat") == 0) {
    CHECK(members(8) == 8, "a smaller team");
    refuse_threads();
    CHECK(members(8) == 8, "a smaller team of threads that are there");
    puts("the old team is whole");
    fflush(stdout);
    count = members(9);
  } else if (strcmp(mode, "nested") == 0) {
    CHECK(members(4) == 4, "a smaller team");
    refuse_threads();
#pragma omp parallel num_threads(4) reduction(+ : count)
    {
#pragma omp barrier
      if (omp_get_thread_num() == 2) count += members(3);
    }
  } else if (strcmp(mode, "at-once") == 0) {
    CHECK(members(16) == 16, "a smaller team");
    refuse_threads();
#pragma omp parallel num_threads(16) reduction(+ : count)
    count += members(2);
  }
  printf("went on with %d members\n", count);
  return 0;
}
