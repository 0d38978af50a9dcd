// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sleeping and I/O.
//
// Whether a descriptor is ready is old news when it is used: another thread may have been faster. So the
// attempt must not block either; where the kernel offers no such attempt (before 6.4: pipes), it may, and then
// holds the worker until the next tick promotes the thread.
#include "threads/sync/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

#include "bosk/error.h"
#include "sched/address_wait.h"
#include "sched/clock.h"
#include "sched/fd_wait.h"
#include "threads/sync/wait_list.h"

namespace bosk::threads {
namespace {

/// The kernel knows no such attempt for this file.
bool is_refused(int error) { return error == EOPNOTSUPP || error == ENOSYS || error == EINVAL; }

/// The attempt that does not block: -EAGAIN: not now; -EOPNOTSUPP: there is no such attempt.
ssize_t try_read(int fd, void* buffer, size_t bytes) {
  const iovec where{buffer, bytes};
  ssize_t done = preadv2(fd, &where, 1, -1, RWF_NOWAIT);
  if (done >= 0) return done;
  if (!is_refused(errno)) return -errno;
  done = recv(fd, buffer, bytes, MSG_DONTWAIT);
  return done >= 0 ? done : errno == ENOTSOCK ? -EOPNOTSUPP : -errno;
}

ssize_t try_write(int fd, const void* buffer, size_t bytes) {
  const iovec where{const_cast<void*>(buffer), bytes};
  ssize_t done = pwritev2(fd, &where, 1, -1, RWF_NOWAIT);
  if (done >= 0) return done;
  if (!is_refused(errno)) return -errno;
  done = send(fd, buffer, bytes, MSG_DONTWAIT);
  return done >= 0 ? done : errno == ENOTSOCK ? -EOPNOTSUPP : -errno;
}

ssize_t plain_read(int fd, void* buffer, size_t bytes) {
  const ssize_t done = read(fd, buffer, bytes);
  return done >= 0 ? done : -errno;
}

/// Of a pipe that is ready for writing a page is free: more than that could block.
ssize_t plain_write(int fd, const void* buffer, size_t bytes) {
  const ssize_t done = write(fd, buffer, bytes > PIPE_BUF ? PIPE_BUF : bytes);
  return done >= 0 ? done : -errno;
}

/// 0: ready, and it had to be waited for or not; negative: an error.
int wait_ready(int fd, short events, bool* at_once) {
  if (fd < 0) return -EBADF;  // poll() lets it be, and waits
  pollfd one{fd, events, 0};
  int ready = poll(&one, 1, 0);
  *at_once = ready > 0;
  if (ready <= 0) {  // it may have been interrupted
    be_known();
    ready = sched::poll_until(&one, 1, kForever);
  }
  if (ready < 0) return ready;
  return (one.revents & POLLNVAL) != 0 ? -EBADF : 0;
}

/// Ready again and again without an attempt that succeeds: an ordinary file, whose attempt fails where the disk is
/// needed. Somebody else being faster so often is as rare as it is harmless.
constexpr int kAttempts = 3;

/// attempt() until it is not refused for the time being, with waits between; plain() where there is no attempt.
template <typename Attempt, typename Plain>
ssize_t when_ready(int fd, short events, Attempt attempt, Plain plain) {
  int refused = 0;
  for (;;) {
    ssize_t done = attempt();
    if (done == -EINTR) continue;
    if (done != -EAGAIN && done != -EOPNOTSUPP) return done;
    bool at_once;
    if (const int error = wait_ready(fd, events, &at_once); error != 0) return error;
    refused = at_once ? refused + 1 : 0;
    if (done != -EOPNOTSUPP && refused < kAttempts) continue;
    done = plain();
    if (done != -EAGAIN && done != -EINTR) return done;
  }
}

ssize_t read_when_ready(int fd, void* buffer, size_t bytes) {
  return when_ready(
      fd, POLLIN, [&] { return try_read(fd, buffer, bytes); },
      [&] { return plain_read(fd, buffer, bytes); });
}

ssize_t write_when_ready(int fd, const void* buffer, size_t bytes) {
  return when_ready(
      fd, POLLOUT, [&] { return try_write(fd, buffer, bytes); },
      [&] { return plain_write(fd, buffer, bytes); });
}

/// Of a negative errno value.
int io_error(ssize_t negative) {
  errno = static_cast<int>(-negative);
  return BOSK_EIO;
}

/// Of what poll_until() returns.
int code_of(int negative) {
  return negative == -ENOMEM || negative == -EAGAIN ? BOSK_ENOMEM : io_error(negative);
}

}  // namespace

int sleep_until(uint64_t deadline) {
  be_known();
  if (sched::clock_now() >= deadline) {
    sched::give_way();
    return 0;
  }
  const std::atomic<uint32_t> never{0};
  for (;;) {
    if (sched::clock_now() >= deadline) return 0;
    if (sched::wait_on_until(never, 0, deadline) == sched::WaitEnd::kNoClock) return BOSK_ENOMEM;
  }
}

int wait_fd(int fd, int events, uint64_t deadline) {
  pollfd one{fd, static_cast<short>(events), 0};
  if (fd < 0) return io_error(-EBADF);
  be_known();
  const int ready = sched::poll_until(&one, 1, deadline);
  if (ready < 0) return code_of(ready);
  if (ready == 0) return BOSK_ETIMEDOUT;
  return (one.revents & POLLNVAL) != 0 ? io_error(-EBADF) : one.revents;
}

int poll_fds(pollfd* fds, size_t count, uint64_t deadline) {
  if (count > INT_MAX || (fds == nullptr && count != 0)) return BOSK_EINVAL;
  be_known();
  const int ready = sched::poll_until(fds, static_cast<uint32_t>(count), deadline);
  return ready < 0 ? code_of(ready) : ready;
}

ssize_t read_fd(int fd, void* buffer, size_t bytes) {
  const ssize_t done = read_when_ready(fd, buffer, bytes);
  return done < 0 ? io_error(done) : done;
}

ssize_t write_fd(int fd, const void* buffer, size_t bytes) {
  const ssize_t done = write_when_ready(fd, buffer, bytes);
  return done < 0 ? io_error(done) : done;
}

int accept_fd(int fd, sockaddr* address, socklen_t* address_bytes, int flags) {
  for (;;) {
    bool at_once;
    if (const int error = wait_ready(fd, POLLIN, &at_once); error != 0) return io_error(error);
    const int made = accept4(fd, address, address_bytes, flags);
    if (made >= 0) return made;
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) return BOSK_EIO;
  }
}

int connect_fd(int fd, const sockaddr* address, socklen_t address_bytes, uint64_t deadline) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0) return BOSK_EIO;
  // Nobody else can use a socket before it is connected, so its flags can be changed for so long.
  const bool blocking = (flags & O_NONBLOCK) == 0;
  if (blocking && fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return BOSK_EIO;
  int error = connect(fd, address, address_bytes) == 0 ? 0 : errno;
  if (blocking) fcntl(fd, F_SETFL, flags);
  if (error == EINPROGRESS || error == EINTR) {
    const int happened = wait_fd(fd, POLLOUT, deadline);
    if (happened < 0) return happened;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return BOSK_EIO;
  }
  return error == 0 ? 0 : io_error(-error);
}

}  // namespace bosk::threads
