// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Opening: the system call where we may, the device where an administrator has opened that.
#include "memory/next_touch/userfault.h"

#include <errno.h>
#include <fcntl.h>

#include "memory/next_touch/high_file.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace bosk::memory {
namespace {

constexpr unsigned long kNewFromDevice = _IO(0xAA, 0x00);  // USERFAULTFD_IOC_NEW, Linux 6.1

long open_plain(bool kernel_faults) {
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

}  // namespace

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
