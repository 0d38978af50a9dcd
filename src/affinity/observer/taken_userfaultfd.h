// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A userfaultfd of a process that runs already and has nothing of ours in it: one of its threads is stopped for some 50 µs, as by a debugger, and makes it.
#pragma once

#include <sys/types.h>

#include "affinity/observer/file_descriptor.h"

namespace bosk::affinity {

struct TakenUserfaultfd {
  FileDescriptor descriptor;
  /// If there is none: an errno. EAGAIN: ask again later. EOPNOTSUPP: this kernel has no asynchronous write-protection. EACCES: the process filters its system
  /// calls, and might end by one that it does not expect. EBUSY: somebody debugs it. EPERM: it is not ours to touch.
  int error = 0;
};

/// For asynchronous write-protection. Only a thread that computes is stopped: no system call of the process is cut short, nor an atomic sequence of its CPU (rseq). Nothing
/// is written to its memory, and it has the userfaultfd open only as long as it is stopped. All by the calling thread.
TakenUserfaultfd take_userfaultfd(pid_t process);

}  // namespace bosk::affinity
