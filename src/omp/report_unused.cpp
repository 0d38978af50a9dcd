// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `bosk run --report` of a program that used no OpenMP: it says so, instead of nothing.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/message.h"
#include "omp/report.h"

namespace bosk::omp {
namespace {

/// Only of the process that `bosk run` became, and not where it has run others: a script's programs may have reported.
[[gnu::destructor]] void tell_if_unused() {
  const char* process = secure_getenv("BOSK_RUN_PROCESS");
  if (process == nullptr || report_was_started() || atol(process) != getpid()) return;
  rusage children;
  if (getrusage(RUSAGE_CHILDREN, &children) != 0 || children.ru_maxrss != 0) return;
  base::say(
      "%.200s used no OpenMP that bosk serves, so there is no report (is it built with -fopenmp, and not linked statically?)",
      program_invocation_name);
}

}  // namespace
}  // namespace bosk::omp
