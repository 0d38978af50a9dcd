// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One-line messages to the user.
#include "base/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace bosk::base {
namespace {

constexpr int kLineMax = 1024;

void write_line(const char* prefix, const char* format, va_list args) {
  // errno belongs to the program: a warning must not change it.
  const int saved = errno;
  char line[kLineMax];
  int at = snprintf(line, sizeof line, "%s", prefix);
  const int more = vsnprintf(line + at, sizeof line - at - 1, format, args);
  at += more < 0 ? 0 : more;
  if (at > kLineMax - 2) at = kLineMax - 2;
  line[at++] = '\n';
  const char* from = line;
  while (at > 0) {
    const ssize_t n = write(STDERR_FILENO, from, at);
    if (n < 0 && errno != EINTR) break;
    if (n > 0) {
      from += n;
      at -= static_cast<int>(n);
    }
  }
  errno = saved;
}

}  // namespace

void say(const char* format, ...) {
  va_list args;
  va_start(args, format);
  write_line("bosk: ", format, args);
  va_end(args);
}

void die(int status, const char* format, ...) {
  va_list args;
  va_start(args, format);
  write_line("bosk: ", format, args);
  va_end(args);
  exit(status);
}

void gomp_error(const char* format, ...) {
  va_list args;
  va_start(args, format);
  write_line("\nlibgomp: ", format, args);
  va_end(args);
}

void gomp_fatal(const char* format, ...) {
  va_list args;
  va_start(args, format);
  write_line("\nlibgomp: ", format, args);
  va_end(args);
  exit(1);
}

}  // namespace bosk::base
