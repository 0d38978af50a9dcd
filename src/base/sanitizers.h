// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which sanitizer the build has: BOSK_TSAN, BOSK_ASAN, or neither.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define BOSK_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BOSK_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define BOSK_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BOSK_ASAN 1
#endif
#endif
