// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A plug-in that brings a C++ run-time, as far as somebody who looks for one can tell.
#include <unistd.h>

struct globals {
  void* caught;
  unsigned uncaught;
};

struct globals* __cxa_get_globals(void);

struct globals* __cxa_get_globals(void) {
  static __thread struct globals mine;
  return &mine;
}

/// Seen by others for a while before the load is over.
__attribute__((constructor)) static void take_time(void) { usleep(300); }
