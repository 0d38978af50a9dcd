// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What forks must wait for in the memory manager they know from the beginning: handlers that are registered at its first use come too late
// for another thread that uses it meanwhile, and for a fork that is under way.
#include "bosk_check.h"

#include <bosk/memory.h>
#include <dlfcn.h>

static int registered;

/// What pthread_atfork() calls, here in front of the C library's.
int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void),
                      void* object) {
  ++registered;
  int (*real)(void (*)(void), void (*)(void), void (*)(void), void*);
  *(void**)&real = dlsym(RTLD_NEXT, "__register_atfork");
  return real(before, in_parent, in_child, object);
}

int main(void) {
  enum { BYTES = 1 << 20 };
  CHECK(registered != 0, "the library registers nothing when it is loaded");
  registered = 0;
  OK(bosk_free(bosk_malloc(100)));
  void* block;
  OK(bosk_mem_alloc(&block, BYTES, NULL));
  memset(block, 1, BYTES);
  const int error = bosk_mem_next_touch(block, BYTES, 0);
  CHECK(error == BOSK_OK || error == BOSK_ENOTSUP, "next-touch: %s", bosk_strerror(error));
  OK(bosk_free(block));
  CHECK(registered == 0, "%d handlers were registered at first use", registered);
  return passed();
}
