// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dynamic loader: looks at what is loaded, and opening libraries, where a process that was forked can.
//
// dl_iterate_phdr() holds a lock of the loader's that fork() copies as it is: a child that is forked while another
// thread is in there would wait for ever when it looks itself. So who looks holds a lock of ours as well, and whoever
// forks takes it before. Who opens or closes a library, ours or the program, cannot be waited for (it runs code of others, which may wait for who
// forks): a child that has come into being meanwhile is told, and looks at nothing and opens none. Nobody begins while a process is being copied.
#pragma once

#include <stdint.h>

#include <atomic>

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

/// Who is in a library of others that has locks, opens libraries, and knows nothing of forks. Static; preemption is on.
class LibraryVisits {
 public:
  /// False: this process, or one that it descends from, was forked while another thread was in there, which left it as it was then.
  bool enter();
  /// By the thread that has entered.
  void leave();

 private:
  std::atomic<uint32_t> inside_{0};
  // Guarded by a lock that whoever forks takes:
  long process_ = 0;  ///< whose visitors are counted
  bool is_left_inside_ = false;
};

/// dlopen(). Null: it cannot be had, `*why` says why until the thread's next call of the loader's.
void* open_library(const char* file, int flags, const char** why);

}  // namespace bosk::base
