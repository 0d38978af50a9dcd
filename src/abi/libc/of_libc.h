// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of libc's that the library has, too, as libc has them.
#pragma once

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

namespace bosk::libc {

/// A pointer for each, and nothing else.
struct LibcFunctions {
  decltype(&::clock_gettime) clock_gettime;
  decltype(&::clock_nanosleep) clock_nanosleep;
  decltype(&::getrusage) getrusage;
  decltype(&::inet_ntoa) inet_ntoa;
  decltype(&::pthread_getaffinity_np) pthread_getaffinity_np;
  decltype(&::pthread_getname_np) pthread_getname_np;
  decltype(&::pthread_getschedparam) pthread_getschedparam;
  decltype(&::pthread_setaffinity_np) pthread_setaffinity_np;
  decltype(&::pthread_setname_np) pthread_setname_np;
  decltype(&::pthread_setschedparam) pthread_setschedparam;
  decltype(&::pthread_setschedprio) pthread_setschedprio;
  char* (*strerror)(int);
  decltype(&::strerror_l) strerror_l;
  decltype(&::strsignal) strsignal;
};

/// libc's own, or what is preloaded between ours and libc: found when the library is loaded, all of them, and so without the loader's lock afterwards. A handler, or a child of a
/// fork, whose first call looked would wait for ever where the thread that it has interrupted, or another one of the parent's, was in
/// dlopen().
const LibcFunctions& of_libc();

}  // namespace bosk::libc
