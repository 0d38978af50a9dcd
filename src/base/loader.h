// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dynamic loader: looks at what is loaded, and opening libraries, where a process that was forked can.
//
// dl_iterate_phdr() holds a lock of the loader's that fork() copies as it is: a child that is forked while another
// thread is in there would wait for ever when it looks itself. So who looks holds a lock of ours as well, and whoever
// forks takes it before. What the program's own threads do with the loader, dlopen() first of all, cannot be waited for:
// a child that has come into being meanwhile is told, and looks at nothing.
#pragma once

namespace bosk::base {

/// Around a call of dl_iterate_phdr(). Preemption is on, and nothing in there forks.
class LoaderLook {
 public:
  LoaderLook();
  ~LoaderLook();
  LoaderLook(const LoaderLook&) = delete;
  LoaderLook& operator=(const LoaderLook&) = delete;

  /// False: the loader's lock is held for ever by a thread that this process, a forked child, has not. Then nothing can be loaded
  /// or unloaded any more either. What cannot be looked at may be anything.
  static bool is_possible();
};

/// dlopen(). Null: it cannot be had, `*why` says why until the thread's next call of the loader's.
void* open_library(const char* file, int flags, const char** why);

}  // namespace bosk::base
