// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes what GOMP_DEBUG asks for.
#include "abi/goacc/debug.h"

#include <stdio.h>
#include <string.h>

#include "base/message_log.h"
#include "omp/environment.h"

namespace bosk::acc {

bool debugging() { return omp::process_icvs().debug != 0; }

void debug(const char* format, va_list arguments) {
  if (!debugging()) return;
  char text[900];
  vsnprintf(text, sizeof text, format, arguments);
  base::write_error_text(text, strlen(text));
}

void debug(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  debug(format, arguments);
  va_end(arguments);
}

}  // namespace bosk::acc
