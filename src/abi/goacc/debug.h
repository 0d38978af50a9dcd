// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What GOMP_DEBUG=1 shows on standard error: the constructs as they come.
#pragma once

#include <stdarg.h>

namespace bosk::acc {

bool debugging();

/// Text as it is, without a prefix and an end of line; nothing unless debugging(). Cut after some 900
/// characters.
[[gnu::format(printf, 1, 2)]] void debug(const char* format, ...);
[[gnu::format(printf, 1, 0)]] void debug(const char* format, va_list arguments);

}  // namespace bosk::acc
