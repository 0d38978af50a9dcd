// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls that return how much they have done. Uninterrupted, they do all (signal(7), pipe(7), random(4)).
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "base/syscalls.h"
#include "sched/repeated_call.h"

namespace bosk::sched {
namespace {

using base::raw_syscall;

/// Which arguments say what there is to do; -1: none does.
struct Shape {
  int buffer = -1;
  int length = -1;
  int offset = -1;  ///< in the file; it goes on with what is done
};

/// /dev/zero and the like, which read() fills all of; others give what they have.
bool is_memory_device(long fd) {
  constexpr unsigned kMajorOfMemory = 1;
  struct stat status{};
#ifdef SYS_fstat
  if (raw_syscall(SYS_fstat, fd, base::address_of(&status)) != 0) return false;
#else
  if (raw_syscall(SYS_newfstatat, fd, base::address_of(""), base::address_of(&status),
                  0x1000 /* AT_EMPTY_PATH */) != 0)
    return false;
#endif
  return S_ISCHR(status.st_mode) && major(status.st_rdev) == kMajorOfMemory;
}

Shape shape_of(long number, const CallArguments& a) {
  switch (number) {
    case SYS_write:
    case SYS_sendto:
      return {1, 2, -1};
    case SYS_pwrite64:
      return {1, 2, 3};
    case SYS_recvfrom:
      return (a[3] & MSG_WAITALL) != 0 ? Shape{1, 2, -1} : Shape{};
    case SYS_getrandom:
      return {0, 1, -1};
    case SYS_read:
      return is_memory_device(a[0]) ? Shape{1, 2, -1} : Shape{};
    // It moves the offset itself.
    case SYS_sendfile:
      return {-1, 3, -1};
    default:
      return {};
  }
}

bool is_message(long number) { return number == SYS_sendmsg || number == SYS_recvmsg; }

/// Calls with several buffers.
bool has_parts(long number, const CallArguments& a) {
  switch (number) {
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_sendmsg:
      return true;
    case SYS_recvmsg:
      return (a[2] & MSG_WAITALL) != 0;
    default:
      return false;
  }
}

struct Parts {
  const iovec* first;
  uint64_t count;

  uint64_t bytes() const {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; ++i) sum += first[i].iov_len;
    return sum;
  }
};

Parts parts_of(long number, const CallArguments& a) {
  if (!is_message(number))
    return {reinterpret_cast<const iovec*>(a[1]), static_cast<uint64_t>(a[2])};
  const auto* message = reinterpret_cast<const msghdr*>(a[1]);
  return {message->msg_iov, message->msg_iovlen};
}

/// The call on other buffers, `done` bytes after its beginning.
long call_on_parts(long number, const CallArguments& a, Parts parts, uint64_t done) {
  CallArguments b = a;
  msghdr message;
  if (is_message(number)) {
    message = *reinterpret_cast<const msghdr*>(a[1]);
    message.msg_iov = const_cast<iovec*>(parts.first);
    message.msg_iovlen = parts.count;
    // It went, or came, with the first byte.
    message.msg_control = nullptr;
    message.msg_controllen = 0;
    b.at[1] = base::address_of(&message);
  } else {
    b.at[1] = base::address_of(parts.first);
    b.at[2] = static_cast<long>(parts.count);
    // pwritev2 with -1 goes on where the file stands.
    if (number != SYS_writev && a[3] != -1) b.at[3] += static_cast<long>(done);
  }
  return call_by_number(number, b);
}

long finish_parts(long number, const CallArguments& a, uint64_t done,
                  const volatile uint32_t& ticks) {
  Parts parts = parts_of(number, a);
  uint64_t passed = 0;  // bytes in the parts before
  for (;;) {
    while (parts.count != 0 && passed + parts.first->iov_len <= done) {
      passed += parts.first->iov_len;
      ++parts.first;
      --parts.count;
    }
    if (parts.count == 0) return static_cast<long>(done);
    // Of a part that was begun the rest alone, then all others.
    const uint64_t begun = done - passed;
    const iovec rest{static_cast<char*>(parts.first->iov_base) + begun,
                     parts.first->iov_len - begun};
    const Parts next = begun != 0 ? Parts{&rest, 1} : parts;
    const uint32_t ticks_before = ticks;
    const long more = call_on_parts(number, a, next, done);
    if (more == kCutAgain || more == kCutAndMoved) continue;
    if (more <= 0) return static_cast<long>(done);
    done += static_cast<uint64_t>(more);
    if (static_cast<uint64_t>(more) < next.bytes() && ticks == ticks_before)
      return static_cast<long>(done);
  }
}

}  // namespace

bool is_partial(long number, const CallArguments& a, long done) {
  if (has_parts(number, a)) return static_cast<uint64_t>(done) < parts_of(number, a).bytes();
  const Shape shape = shape_of(number, a);
  return shape.length >= 0 && static_cast<uint64_t>(done) < static_cast<uint64_t>(a[shape.length]);
}

long finish_partial(long number, const CallArguments& a, long done,
                    const volatile uint32_t& ticks) {
  if (has_parts(number, a)) return finish_parts(number, a, static_cast<uint64_t>(done), ticks);
  const Shape shape = shape_of(number, a);
  while (done < a[shape.length]) {
    CallArguments rest = a;
    rest.at[shape.length] -= done;
    if (shape.buffer >= 0) rest.at[shape.buffer] += done;
    if (shape.offset >= 0) rest.at[shape.offset] += done;
    const uint32_t ticks_before = ticks;
    const long more = call_by_number(number, rest);
    if (more == kCutAgain || more == kCutAndMoved) continue;
    if (more <= 0) break;
    done += more;
    // Short, and by no tick: by a signal of the program's, or it is all that can be had.
    if (more < rest[shape.length] && ticks == ticks_before) break;
  }
  return done;
}

}  // namespace bosk::sched
