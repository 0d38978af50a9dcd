// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_target*: every region runs on the host, where its data are already.
#include <limits.h>
#include <stdint.h>

#include "abi/gomp/export.h"
#include "omp/host_device.h"
#include "omp/target_region.h"

using namespace bosk::omp;

namespace {

constexpr unsigned kNowait = 1;

/// The thread_limit clause in the list that compilers pass with a target construct, which null ends:
/// each item is a number (bits 0..6: for which device, 0: for all), which clause (bits 8..15) and a
/// value, above these bits or, if bit 7 is set, in the next item.
uint32_t thread_limit_of(void** arguments) {
  constexpr intptr_t kDevice = 0x7f;
  constexpr intptr_t kValueFollows = 0x80;
  constexpr intptr_t kClause = 0xff00;
  constexpr intptr_t kThreadLimit = 0x200;
  constexpr int kValueAt = 16;
  uint32_t limit = 0;
  if (arguments == nullptr) return 0;
  while (*arguments != nullptr) {
    const auto item = reinterpret_cast<intptr_t>(*arguments++);
    const intptr_t value =
        (item & kValueFollows) != 0 ? reinterpret_cast<intptr_t>(*arguments++) : item >> kValueAt;
    if ((item & kDevice) == 0 && (item & kClause) == kThreadLimit && value > 0)
      limit = value > INT_MAX ? UINT32_MAX : static_cast<uint32_t>(value);
  }
  return limit;
}

}  // namespace

BOSK_EXPORT void GOMP_target_ext(int device, void (*fn)(void*), size_t count, void** addresses,
                                 size_t* sizes, unsigned short* kinds, unsigned flags,
                                 void** depend, void** arguments) {
  check_device_of_construct(device);
  const TargetRegion region{fn, count, addresses, sizes, kinds, thread_limit_of(arguments)};
  if ((flags & kNowait) != 0)
    defer_target(region, depend);
  else
    run_target(region, depend);
}

// A data environment on the host is the one that is there.
BOSK_EXPORT void GOMP_target_data_ext(int device, size_t, void**, size_t*, unsigned short*) {
  check_device_of_construct(device);
}
BOSK_EXPORT void GOMP_target_end_data() {}

BOSK_EXPORT void GOMP_target_update_ext(int device, size_t, void**, size_t*, unsigned short*,
                                        unsigned flags, void** depend) {
  check_device_of_construct(device);
  keep_dependences(depend, (flags & kNowait) != 0);
}
BOSK_EXPORT void GOMP_target_enter_exit_data(int device, size_t, void**, size_t*, unsigned short*,
                                             unsigned flags, void** depend) {
  check_device_of_construct(device);
  keep_dependences(depend, (flags & kNowait) != 0);
}

// What GCC before 6 calls: nothing is firstprivate, there are no dependences.
BOSK_EXPORT void GOMP_target(int device, void (*fn)(void*), const void*, size_t, void** addresses,
                             size_t*, unsigned char*) {
  check_device_of_construct(device);
  run_as_initial_thread(fn, addresses, 0);
}
BOSK_EXPORT void GOMP_target_data(int device, const void*, size_t, void**, size_t*,
                                  unsigned char*) {
  check_device_of_construct(device);
}
BOSK_EXPORT void GOMP_target_update(int device, const void*, size_t, void**, size_t*,
                                    unsigned char*) {
  check_device_of_construct(device);
}
