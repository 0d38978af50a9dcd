// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/observer_messages.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/syscalls.h"
#include "observed/hand_over.h"

namespace bosk::base {

namespace {

/// A socket on which that has been said; or -errno.
int connect_and_say(const ObserverAddress& observer, uint32_t kind) {
  const long socket =
      raw_syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return static_cast<int>(socket);
  const bosk_observed_message message = {BOSK_OBSERVED_VERSION, kind, 0};
  long done = raw_syscall(SYS_connect, socket, address_of(&observer.name), observer.size);
  if (done == 0)
    done =
        raw_syscall(SYS_sendto, socket, address_of(&message), sizeof message, MSG_NOSIGNAL, 0, 0);
  if (done > 0) return static_cast<int>(socket);
  raw_syscall(SYS_close, socket);
  return static_cast<int>(done);
}

/// Until it has something to say, or is closed.
void wait_for(int socket, timespec time) {
  pollfd wanted = {socket, POLLIN, 0};
  raw_syscall(SYS_ppoll, address_of(&wanted), 1, address_of(&time), 0, 0);
}

/// Says it, and waits until it is done, a second at most.
void say(uint32_t kind) {
  ObserverAddress observer;
  if (!find_observer(&observer)) return;
  const int socket = connect_and_say(observer, kind);
  if (socket < 0) return;
  wait_for(socket, {1, 0});
  raw_syscall(SYS_close, socket);
}

}  // namespace

bool find_observer(ObserverAddress* observer) {
  const char* name = getenv(BOSK_OBSERVER_VARIABLE);
  if (name == nullptr || *name == '\0') return false;
  observer->name = {};
  const size_t length = strlen(name);
  if (length >= sizeof observer->name.sun_path) return false;
  observer->name.sun_family = AF_UNIX;
  memcpy(observer->name.sun_path + 1, name, length);
  observer->size = static_cast<long>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return true;
}

int ask_for_wishes(const ObserverAddress& observer) {
  return connect_and_say(observer, BOSK_OBSERVED_WISHES);
}

int take_wishes(int socket, long wait_ns) {
  wait_for(socket, {0, wait_ns});
  char byte;
  iovec into = {&byte, 1};
  alignas(cmsghdr) char with[CMSG_SPACE(sizeof(int))];
  msghdr message = {};
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  message.msg_control = with;
  message.msg_controllen = sizeof with;
  const long got = raw_syscall(SYS_recvmsg, socket, address_of(&message), MSG_CMSG_CLOEXEC);
  if (got < 0) return static_cast<int>(got);
  const cmsghdr* header = got == 1 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int)))
    return -ENODATA;
  int file;
  memcpy(&file, CMSG_DATA(header), sizeof file);
  return file;
}

void release_from_observer() { say(BOSK_OBSERVED_RELEASE); }

void release_threads_from_observer() { say(BOSK_OBSERVED_PLACES_THREADS); }

void release_memory_from_observer() { say(BOSK_OBSERVED_PLACES_MEMORY); }

}  // namespace bosk::base
