// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/observer_messages.h"

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/syscalls.h"
#include "observed/hand_over.h"

namespace bosk::base {

namespace {

/// Says it, and waits until it is done, a second at most.
void say(uint32_t kind) {
  const char* name = getenv(BOSK_OBSERVER_VARIABLE);
  if (name == nullptr || *name == '\0') return;
  sockaddr_un address = {};
  const size_t length = strlen(name);
  if (length >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path + 1, name, length);
  const long socket =
      raw_syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return;
  const long size = static_cast<long>(offsetof(sockaddr_un, sun_path) + 1 + length);
  const bosk_observed_message message = {BOSK_OBSERVED_VERSION, kind, 0};
  if (raw_syscall(SYS_connect, socket, address_of(&address), size) == 0 &&
      raw_syscall(SYS_sendto, socket, address_of(&message), sizeof message, MSG_NOSIGNAL, 0, 0) >
          0) {
    pollfd closed = {static_cast<int>(socket), POLLIN, 0};
    timespec second = {1, 0};
    raw_syscall(SYS_ppoll, address_of(&closed), 1, address_of(&second), 0, 0);
  }
  raw_syscall(SYS_close, socket);
}

}  // namespace

void release_from_observer() { say(BOSK_OBSERVED_RELEASE); }

void release_threads_from_observer() { say(BOSK_OBSERVED_PLACES_THREADS); }

void release_memory_from_observer() { say(BOSK_OBSERVED_PLACES_MEMORY); }

}  // namespace bosk::base
