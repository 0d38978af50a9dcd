// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Formatting of error lines.
#include "topology/error.h"

#include <stdarg.h>
#include <stdio.h>

namespace bosk::topology {

bool Error::set(const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  // The texts quote what the user gave us; a line break in it must not make two lines of one error.
  for (char* at = text; *at != '\0'; at++) {
    if (*at == '\n' || *at == '\r') *at = ' ';
  }
  return false;
}

}  // namespace bosk::topology
