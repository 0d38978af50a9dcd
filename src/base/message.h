// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One-line messages to the user: every warning and fatal error of the library goes through here.
#pragma once

namespace bosk::base {

/// Writes one line "bosk: <text>\n" to standard error in a single write(2). Thread-safe,
/// async-signal-safe as far as the format is (%d %u %ld %lu %zu %s %p %x %c), allocates nothing.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

/// say() once per call site: `static SayOnce once; once.say(...)`. Constant-initialised.
struct SayOnce {
  int said = 0;
  /// True for exactly one caller in the life of the process (and again in a forked child that
  /// inherits said == 0).
  bool first() { return __atomic_exchange_n(&said, 1, __ATOMIC_RELAXED) == 0; }
};

/// Like say(), then exit(status), so that what the program has buffered is still written. Never
/// from a signal handler.
[[noreturn, gnu::format(printf, 2, 3)]] void die(int status, const char* format, ...);

/// Like say() and die(), in libgomp's words: the prefix is "libgomp: " (scripts grep for it).
[[gnu::format(printf, 1, 2)]] void gomp_error(const char* format, ...);
[[noreturn, gnu::format(printf, 1, 2)]] void gomp_fatal(const char* format, ...);

}  // namespace bosk::base
