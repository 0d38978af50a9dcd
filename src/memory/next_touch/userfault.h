// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// userfaultfd(2), also what Debian 12's headers do not know yet. By raw system calls: handlers use it.
#pragma once

#include <linux/ioctl.h>
#include <linux/userfaultfd.h>
#include <stddef.h>
#include <stdint.h>

#include "base/syscalls.h"

namespace bosk::memory {

/// Linux 6.8.
struct UserfaultMove {
  uint64_t to;
  uint64_t from;
  uint64_t bytes;
  uint64_t mode;
  int64_t moved;
};
constexpr unsigned long kUserfaultMove = _IOWR(UFFDIO, 0x05, UserfaultMove);
constexpr uint64_t kMoveDoNotWake = 1;
constexpr uint64_t kMoveAllowHoles = 2;
constexpr uint64_t kFeatureMove = 1 << 16;

/// Opens one. `kernel_faults`: system calls wait for the resolver, too; needs privileges. The features
/// that were asked for are all there, `optional` ones as far as the kernel has them (`features` tells).
/// A file, or negative errno.
int open_userfault(bool kernel_faults, uint64_t needed, uint64_t optional, uint64_t* features);

inline long userfault_call(int file, unsigned long request, void* argument) {
  return base::raw_syscall(SYS_ioctl, file, static_cast<long>(request), base::address_of(argument));
}

inline long userfault_register(int file, uintptr_t begin, uintptr_t end, uint64_t mode) {
  uffdio_register call = {{begin, end - begin}, mode, 0};
  return userfault_call(file, UFFDIO_REGISTER, &call);
}
inline long userfault_unregister(int file, uintptr_t begin, uintptr_t end) {
  uffdio_range range = {begin, end - begin};
  return userfault_call(file, UFFDIO_UNREGISTER, &range);
}
inline long userfault_wake(int file, uintptr_t begin, uintptr_t end) {
  uffdio_range range = {begin, end - begin};
  return userfault_call(file, UFFDIO_WAKE, &range);
}
inline long userfault_protect(int file, uintptr_t begin, uintptr_t end, bool on) {
  uffdio_writeprotect call = {{begin, end - begin}, on ? uint64_t{UFFDIO_WRITEPROTECT_MODE_WP} : 0};
  return userfault_call(file, UFFDIO_WRITEPROTECT, &call);
}
inline long userfault_zero(int file, uintptr_t begin, uintptr_t end) {
  uffdio_zeropage call = {{begin, end - begin}, 0, 0};
  return userfault_call(file, UFFDIO_ZEROPAGE, &call);
}
/// `done`: bytes, also if it failed behind them.
inline long userfault_copy(int file, uintptr_t to, uintptr_t from, size_t bytes, size_t* done) {
  uffdio_copy call = {to, from, bytes, 0, 0};
  const long result = userfault_call(file, UFFDIO_COPY, &call);
  *done = call.copy > 0 ? static_cast<size_t>(call.copy) : 0;
  return result;
}
/// Moves pages, as they are, to where nothing is and what is watched. A hole is moved by leaving it. `done` as above.
long userfault_move(int file, uintptr_t to, uintptr_t from, size_t bytes, size_t* done);
/// Moves nothing: `from` is a page that has never been touched. -EEXIST: there is a page.
inline long userfault_move_hole(int file, uintptr_t to, uintptr_t from, size_t bytes) {
  UserfaultMove call = {to, from, bytes, kMoveAllowHoles, 0};
  return userfault_call(file, kUserfaultMove, &call);
}
/// As userfault_move(), but stops at the first page that is not there. Nobody is woken.
long userfault_move_all(int file, uintptr_t to, uintptr_t from, size_t bytes, size_t* done);

}  // namespace bosk::memory
