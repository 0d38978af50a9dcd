// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Opening: the system call where we may, the device where an administrator has opened that. And a mend for moves.
#include "memory/next_touch/userfault.h"

#include <errno.h>
#include <fcntl.h>

#include "base/cpu.h"
#include "base/observer_messages.h"
#include "base/pages.h"
#include "memory/next_touch/high_file.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace bosk::memory {
namespace {

constexpr unsigned long kNewFromDevice = _IO(0xAA, 0x00);  // USERFAULTFD_IOC_NEW, Linux 6.1

long open_plain(bool kernel_faults) {
  base::release_from_observer();
  const long flags = O_CLOEXEC | O_NONBLOCK;
  if (!kernel_faults) {
    const long file = base::raw_syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY);
    // Before 5.11 there was no such flag, and no such limit either.
    return file == -EINVAL ? base::raw_syscall(SYS_userfaultfd, flags) : file;
  }
  const long file = base::raw_syscall(SYS_userfaultfd, flags);
  if (file >= 0) return file;
  const long device = base::raw_syscall(SYS_openat, AT_FDCWD, base::address_of("/dev/userfaultfd"),
                                        O_RDWR | O_CLOEXEC);
  if (device < 0) return file;
  const long from_device =
      base::raw_syscall(SYS_ioctl, device, static_cast<long>(kNewFromDevice), flags);
  base::raw_syscall(SYS_close, device);
  return from_device;
}

/// How many of these pages have gone from one place to the other, from the first one on. Pages that are swapped out do not
/// count as being anywhere, so that at worst one that has gone is not counted.
size_t count_gone(uintptr_t to, uintptr_t from, size_t pages) {
  constexpr size_t kAtOnce = 64;
  unsigned char in_place[kAtOnce] = {};
  unsigned char left[kAtOnce] = {};
  if (pages > kAtOnce) pages = kAtOnce;
  const auto bytes = static_cast<long>(pages * base::kPage);
  if (base::raw_syscall(SYS_mincore, static_cast<long>(to), bytes, base::address_of(in_place)) !=
          0 ||
      base::raw_syscall(SYS_mincore, static_cast<long>(from), bytes, base::address_of(left)) != 0)
    return 0;
  size_t gone = 0;
  while (gone < pages && (in_place[gone] & 1) != 0 && (left[gone] & 1) == 0) ++gone;
  return gone;
}

long move(int file, uintptr_t to, uintptr_t from, size_t bytes, uint64_t mode, size_t* done) {
  UserfaultMove call = {to, from, bytes, mode, 0};
  const long result = userfault_call(file, kUserfaultMove, &call);
  *done = call.moved > 0 ? static_cast<size_t>(call.moved) : 0;
  if (BOSK_LIKELY(result != -EEXIST)) return result;
  // Linux 6.18 for one: if a page changes under the kernel's hands (its age is looked at, say) it seems to try again; having moved
  // it then, it tries once more, and finds its own work.
  *done = count_gone(to, from, bytes / base::kPage) * base::kPage;
  if (*done == 0) return result;
  if ((mode & kMoveDoNotWake) == 0) userfault_wake(file, to, to + *done);
  return *done == bytes ? 0 : -EAGAIN;
}

}  // namespace

long userfault_move(int file, uintptr_t to, uintptr_t from, size_t bytes, size_t* done) {
  return move(file, to, from, bytes, kMoveAllowHoles, done);
}

long userfault_move_all(int file, uintptr_t to, uintptr_t from, size_t bytes, size_t* done) {
  return move(file, to, from, bytes, kMoveDoNotWake, done);
}

int open_userfault(bool kernel_faults, uint64_t needed, uint64_t optional, uint64_t* features) {
  // The kernel tells what it has when it is asked for nothing; such a file cannot be asked again.
  const long asked = open_plain(kernel_faults);
  if (asked < 0) return static_cast<int>(asked);
  uffdio_api api = {};
  api.api = UFFD_API;
  const long failed = userfault_call(static_cast<int>(asked), UFFDIO_API, &api);
  base::raw_syscall(SYS_close, asked);
  if (failed != 0) return static_cast<int>(failed);
  if ((api.features & needed) != needed) return -ENOSYS;
  *features = needed | (api.features & optional);

  const long file = open_plain(kernel_faults);
  if (file < 0) return static_cast<int>(file);
  api = {};
  api.api = UFFD_API;
  api.features = *features;
  const long refused = userfault_call(static_cast<int>(file), UFFDIO_API, &api);
  if (refused != 0) {
    base::raw_syscall(SYS_close, file);
    return static_cast<int>(refused);
  }
  return to_high_file(static_cast<int>(file));
}

}  // namespace bosk::memory
