// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program that puts itself into a sandbox before its first region: what the runtime found out when it was loaded may not hold any more.
// membarrier(2) is refused, as by a filter that lists what is allowed and was written for another runtime.
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <omp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void refuse_membarrier(void) {
  static struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof code / sizeof code[0], code};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS: errno %d", errno);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp: errno %d", errno);
}

int main(void) {
  refuse_membarrier();
  for (int threads = 1; threads <= 8; ++threads) {
    int count = 0;
    for (int i = 0; i < 20; ++i) {
#pragma omp parallel num_threads(threads) reduction(+ : count)
      {
#pragma omp barrier
        count++;
      }
      // The workers go to sleep.
      for (double end = omp_get_wtime() + 1e-3; omp_get_wtime() < end;) {
      }
    }
    CHECK(count == 20 * threads, "%d members in 20 regions of %d", count, threads);
  }
  return 0;
}
