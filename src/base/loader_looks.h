// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Looks at the loaded objects, for which forks wait.
//
// dl_iterate_phdr() holds a lock of the loader's that fork() copies as it is: a child that is forked while another of
// our threads is in there would wait for ever when it looks itself. So who looks holds this lock as well, and whoever
// forks takes it before (sched/configuration.cpp). What the program's own threads do with the loader is theirs.
#pragma once

#include <new>

#include "base/sleeping_lock.h"

namespace bosk::base {

inline constinit SleepingLock loader_looks;

/// Around a call of dl_iterate_phdr(). Preemption is on, and nothing in there forks.
class LoaderLook {
 public:
  LoaderLook() { loader_looks.lock(); }
  ~LoaderLook() { loader_looks.unlock(); }
  LoaderLook(const LoaderLook&) = delete;
  LoaderLook& operator=(const LoaderLook&) = delete;
};

}  // namespace bosk::base
