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
#if defined(BOSK_TSAN)
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif
namespace bosk::base {
/// What one thread gives away through something that ThreadSanitizer does not see (a library that is not built for
/// it), and another one gets: it sees that one comes before the other.
inline void tell_tsan_given([[maybe_unused]] void* address) {
#if defined(BOSK_TSAN)
  __tsan_release(address);
#endif
}
inline void tell_tsan_got([[maybe_unused]] void* address) {
#if defined(BOSK_TSAN)
  __tsan_acquire(address);
#endif
}
}  // namespace bosk::base

#if defined(__SANITIZE_ADDRESS__)
#define BOSK_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BOSK_ASAN 1
#endif
#endif
