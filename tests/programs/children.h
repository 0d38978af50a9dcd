// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What programs that fork share: waiting for a child.
#pragma once

#include "check.h"

#include <sys/types.h>
#include <sys/wait.h>

/// `pid` is what fork() returned to the parent: the child must end by itself, with this status.
__attribute__((unused)) static void wait_for_child(pid_t pid, int expected, const char* what) {
  CHECK(pid > 0, "%s: fork: errno %d", what, errno);
  int status = -1;
  while (waitpid(pid, &status, 0) != pid)
    CHECK(errno == EINTR, "%s: waitpid: errno %d", what, errno);
  CHECK(WIFEXITED(status), "%s died of signal %d", what, WTERMSIG(status));
  CHECK(WEXITSTATUS(status) == expected, "%s ended with status %d", what, WEXITSTATUS(status));
}
