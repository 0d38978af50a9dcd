// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_warning and GOMP_error: the error directive at run time.
#include <string.h>

#include "abi/gomp/export.h"
#include "base/message.h"

namespace {

// A length of all ones means that the message ends with a NUL.
int shown_length(const char* message, size_t length) {
  constexpr size_t kMost = 900;  // a line of base/message.h has room for it
  if (length == static_cast<size_t>(-1)) length = strlen(message);
  return static_cast<int>(length < kMost ? length : kMost);
}

}  // namespace

BOSK_EXPORT void GOMP_warning(const char* message, size_t length) {
  if (message == nullptr) {
    bosk::base::gomp_error("error directive encountered");
  } else {
    bosk::base::gomp_error("error directive encountered: %.*s", shown_length(message, length),
                           message);
  }
}

BOSK_EXPORT [[noreturn]] void GOMP_error(const char* message, size_t length) {
  if (message == nullptr) bosk::base::gomp_fatal("fatal error: error directive encountered");
  bosk::base::gomp_fatal("fatal error: error directive encountered: %.*s",
                         shown_length(message, length), message);
}
