// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages collected first and told later.
#include "base/message_log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace bosk::base {

void write_error_text(const char* text, size_t length) {
  while (length > 0) {
    const long n =
        raw_syscall(SYS_write, STDERR_FILENO, address_of(text), static_cast<long>(length));
    if (n < 0 && n != -EINTR) return;
    if (n > 0) {
      text += n;
      length -= static_cast<size_t>(n);
    }
  }
}

void MessageLog::add(const char* format, ...) {
  char line[900];
  va_list args;
  va_start(args, format);
  const int wanted = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (wanted < 0) return;
  const uint32_t length = static_cast<uint32_t>(strlen(line));
  const uint32_t at = text_.size();
  // The mapped pages are zero, so there is always a NUL behind the last line's own.
  if (!text_.reserve(at + length + 2) || !text_.resize(at + length + 1)) return;
  memcpy(text_.data() + at, line, length);
}

void MessageLog::tell_and_release(void (*tell)(const char* format, ...)) {
  for (uint32_t at = 0; at < text_.size();) {
    const char* line = text_.data() + at;
    tell("%s", line);
    at += static_cast<uint32_t>(strlen(line)) + 1;
  }
  text_.release();
}

}  // namespace bosk::base
