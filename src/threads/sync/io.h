// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sleeping and I/O of bosk/sync.h. Results are its codes; BOSK_EIO: errno says why.
#pragma once

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

namespace bosk::threads {

int sleep_until(uint64_t deadline);
int wait_fd(int fd, int events, uint64_t deadline);
int poll_fds(pollfd* fds, size_t count, uint64_t deadline);
ssize_t read_fd(int fd, void* buffer, size_t bytes);
ssize_t write_fd(int fd, const void* buffer, size_t bytes);
int accept_fd(int fd, sockaddr* address, socklen_t* address_bytes, int flags);
int connect_fd(int fd, const sockaddr* address, socklen_t address_bytes, uint64_t deadline);

}  // namespace bosk::threads
